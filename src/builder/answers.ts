import type { Answer, BuildRequest, InspectRequest } from '../schema/messages';

type Envelope = 'v' | 'kind' | 'request' | 'attempt' | 'builder' | 'startedAt' | 'endedAt';

/** What work found out, before it is known as whose answer it goes out. Distributes over the outcomes. */
export type Unsigned<A> = A extends unknown ? Omit<A, Envelope> : never;

export function completeAnswer(request: InspectRequest | BuildRequest, builder: string, startedAt: Date, found: Unsigned<Answer>): Answer {
  const { kind, request: id, attempt } = request;
  // The kind of what was found is that of the request: it was made for it.
  return { v: 1, kind, request: id, attempt, builder, startedAt: startedAt.toISOString(), endedAt: new Date().toISOString(), ...found } as Answer;
}
