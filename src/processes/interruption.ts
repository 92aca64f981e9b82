/** Ctrl-C and SIGTERM: the first asks for an orderly end, the second for a quick one. */

/** `npm start` passes on the Ctrl-C that the terminal sent already: what comes together is one. */
const TOGETHER_MS = 1_000;

export interface Interruption {
  /** Resolves at the first signal. */
  readonly asked: Promise<void>;
  isAsked(): boolean;
  /** Called at the second signal, and at each one after it. */
  onInsisting(act: () => void): void;
  /** Rejects with `Interrupted` as soon as a signal came, else goes as `work` goes. */
  until<T>(work: Promise<T>): Promise<T>;
}

export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

export function watchInterruption(): Interruption {
  let isAsked = false;
  let askedAt = 0;
  let insist: () => void = () => undefined;
  let tell: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const onSignal = (): void => {
    if (isAsked && performance.now() - askedAt > TOGETHER_MS) insist();
    if (!isAsked) askedAt = performance.now();
    isAsked = true;
    tell();
  };
  // SIGHUP too: a terminal that is closed leaves nothing running.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  return {
    asked,
    isAsked: () => isAsked,
    onInsisting: (act) => {
      insist = act;
    },
    until: (work) =>
      Promise.race([
        work,
        asked.then(() => {
          throw new Interrupted('asked to stop');
        }),
      ]),
  };
}
