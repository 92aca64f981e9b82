import type { Link } from '../link';
import { EXCHANGES, ROUTES } from '../link';
import type { Claims } from './claims';
import type { BuilderConfig } from './config';
import type { Job } from './job';

/** Says every few seconds that the builder lives and at what it works, and hears whether that is still wanted. */
export interface Beats {
  /** Beside the regular ones: a step has begun. */
  now(): void;
  stop(): Promise<void>;
}

/** Of the schema; a builder has one build and one inspection at a time. */
const BUSY_MOST = 4;

export function startBeats(options: {
  link: Link;
  jobs: ReadonlyMap<string, Job>;
  claims: Claims;
  publicKey: string;
  /** Of Tally. */
  version: string;
  config: Pick<BuilderConfig, 'name' | 'platforms' | 'beatMs'>;
}): Beats {
  const { link, jobs, claims, config } = options;
  let turn: Promise<void> | null = null;

  async function say(): Promise<void> {
    const busy = [...jobs.values()].flatMap(({ request, step, since }) =>
      step === null ? [] : [{ request: request.request, attempt: request.attempt, step, since: since.toISOString() }],
    );
    const beat = {
      ...{ v: 1, builder: config.name, platforms: config.platforms, at: new Date().toISOString() },
      ...{ publicKey: options.publicKey, version: options.version, busy: busy.slice(0, BUSY_MOST) },
    };
    // One that is lost is followed by the next.
    await link
      .publish(EXCHANGES.builders, ROUTES.builderBeat, beat, { persistent: false, expirationMs: config.beatMs * 6, timeoutMs: config.beatMs })
      .catch(() => undefined);
  }

  /** The control plane may have given the work to another, or want it no more. Its silence changes nothing. */
  async function renew(): Promise<void> {
    const running = [...jobs.values()].filter((job) => job.step !== null);
    await Promise.all(
      running.map(async ({ request, stopper }) => {
        const reply = await claims.ask(request);
        if (reply?.answer === 'drop') stopper.stop({ kind: 'cancelled', reason: reply.reason });
      }),
    );
  }

  const beat = (): void => {
    turn ??= Promise.all([say(), renew()]).then(() => {
      turn = null;
    });
  };
  const timer = setInterval(beat, config.beatMs);
  beat();

  return {
    now: () => void say(),
    async stop() {
      clearInterval(timer);
      await turn;
    },
  };
}
