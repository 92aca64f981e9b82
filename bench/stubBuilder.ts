/** A builder that speaks through the real queues and runs no process: it claims, and answers at once. */
import { randomBytes } from 'node:crypto';
import { EXCHANGES, type Link, openLink, QUEUES, ROUTES } from '../src/link';
import { buildRequest, type ExportedName, type ImportedName, inspectRequest } from '../src/schema/messages';

const NAME = 'stub';
const PLATFORM = 'linux-amd64';
const CLAIM_WITHIN_MS = 30_000;

export interface StubBuilder {
  /** How many builds it has answered. */
  readonly built: () => number;
  stop(): Promise<void>;
}

/** What an inspection says of a module's code; nothing where it is not told. */
export type CodeOf = (module: string) => { readonly exports?: ExportedName[]; readonly imports?: ImportedName[] };

export async function startStubBuilder(amqpUrl: string, prefetch: number, codeOf: CodeOf = () => ({})): Promise<StubBuilder> {
  const link = await openLink({ url: amqpUrl, name: 'stub builder' });
  let built = 0;
  const claimed = async (request: string, attempt: number): Promise<boolean> => {
    const reply = await link.request(
      EXCHANGES.builders,
      ROUTES.claim,
      { v: 1, request, attempt, builder: NAME, platform: PLATFORM },
      { timeoutMs: CLAIM_WITHIN_MS },
    );
    return (reply as { answer?: string } | null)?.answer === 'go';
  };
  await link.consume(QUEUES.inspect, { prefetch }, async (delivery) => {
    const { request, attempt, module } = inspectRequest.parse(JSON.parse(delivery.body.toString()));
    if (await claimed(request, attempt)) {
      const manifest = { module, declare: 'auto' };
      await answer(link, { kind: 'inspect', request, attempt, outcome: 'valid', manifest, notes: [], ...codeOf(module) });
    }
    delivery.ack();
  });
  await link.consume(`build.${PLATFORM}`, { prefetch }, async (delivery) => {
    const { request, attempt, module, inputs } = buildRequest.parse(JSON.parse(delivery.body.toString()));
    if (await claimed(request, attempt)) {
      const digest = `sha256:${randomBytes(32).toString('hex')}`;
      const artifacts = [{ name: module, kind: 'file', repository: `tally/${module}`, digest, blob: digest, size: 1 }];
      await answer(link, { kind: 'build', request, attempt, outcome: 'fit', artifacts, inputs, provenance: null, log: null, steps: {} });
      built += 1;
    }
    delivery.ack();
  });
  const beat = (): Promise<void> =>
    link
      .publish(
        EXCHANGES.builders,
        ROUTES.builderBeat,
        { v: 1, builder: NAME, platforms: [PLATFORM], at: new Date().toISOString(), publicKey: 'stub', version: '0', busy: [] },
        { persistent: false },
      )
      .catch(() => undefined);
  await beat();
  const timer = setInterval(() => void beat(), 10_000);
  return {
    built: () => built,
    stop: async () => {
      clearInterval(timer);
      await link.close();
    },
  };
}

async function answer(link: Link, body: object): Promise<void> {
  const now = new Date().toISOString();
  await link.publish(EXCHANGES.builders, ROUTES.answer, { v: 1, builder: NAME, startedAt: now, endedAt: now, ...body });
}
