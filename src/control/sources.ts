/**
 * Reads the refs that are due. A repository is asked once however many modules it has; one that hangs holds a place of
 * the slow lane and delays no other.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type DueSource, dueRepositories, expectChange, LEASE_MS, type ModuleReading, recordReadings, renewLeases } from '../inventory/sources';
import { gitHostOf } from '../source';
import type { ControlDeps, Running } from './deps';
import { createLimit, type Limit } from './limit';
import { startLoop } from './loop';
import { storingBatches } from './reading';

const AT_A_TIME = 16;
const AT_A_TIME_PER_HOST = 4;
/** For repositories that took long or could not be read the last time. */
const AT_A_TIME_SLOW = 8;
const SLOW_MS = 5_000;
const MOST_A_PASS = 1_000;
/** A third of the lease: one renewal may come late. */
const RENEW_MS = LEASE_MS / 3;
/** The pass ends after this; what still hangs goes on beside the next pass, leased, so that nobody asks it twice. */
const PASS_WITHIN_MS = 5_000;
const MOST_SLOW_REMEMBERED = 10_000;

/** While a change is expected and git still gives the old commit; together a minute. */
const EXPECTING_PAUSES_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 29_000];

export interface SourceReader extends Running {
  /** One pass over what is due; how many modules were read within it. */
  readDue(): Promise<number>;
  /** An event promised a change of these modules: they are read now, and again for a minute until their heads move. */
  expect(modules: readonly string[]): Promise<void>;
}

type Asked = Pick<DueSource, 'repository' | 'ref'>;

/**
 * @param onRead facts of sources were recorded.
 * @param renewMs how often the sources that are being asked are leased anew.
 */
export function createSourceReader(deps: ControlDeps, onRead: () => void = () => undefined, renewMs = RENEW_MS): SourceReader {
  const { db, log, now, times } = deps;
  const ended = new AbortController();
  const fast: Lane = { all: createLimit(AT_A_TIME), hosts: new Map(), holdsMs: SLOW_MS };
  const slow: Lane = { all: createLimit(AT_A_TIME_SLOW), hosts: new Map(), holdsMs: Number.POSITIVE_INFINITY };
  const slowRepositories = new Set<string>();
  const going = new Map<Promise<void>, ReadonlyArray<{ readonly module: string; readonly at: Date }>>();
  const recording = storingBatches<ModuleReading>(500, 50, async (readings) => {
    await recordReadings(db, readings, now(), times);
    onRead();
  });
  let expecting: Promise<void> | null = null;
  /** How far the pauses have grown; an event begins them anew. */
  let step = 0;
  let interrupt = new AbortController();

  async function readDue(): Promise<number> {
    const due = await dueRepositories(db, MOST_A_PASS, now());
    let read = 0;
    const all = Promise.allSettled(
      group(due).map(async ({ asked, modules }) => {
        await follow(readOne(asked, modules), modules);
        read += modules.length;
      }),
    );
    await within(PASS_WITHIN_MS, all);
    return read;
  }

  function follow(work: Promise<void>, modules: readonly string[]): Promise<void> {
    const logged = work.catch((error: unknown) => {
      // The lease ends, and it is read then.
      log.warn({ err: error }, 'what git said could not be recorded');
    });
    const at = now();
    going.set(
      logged,
      modules.map((module) => ({ module, at })),
    );
    void logged.finally(() => going.delete(logged));
    return logged;
  }

  const renewing = startLoop({
    name: 'leases of sources',
    log,
    pauseMs: () => renewMs,
    pass: async () => {
      const leases = [...going.values()].flat();
      if (leases.length > 0) await renewLeases(db, leases, now());
      return leases.length;
    },
  });

  async function readOne({ repository, ref }: Asked, modules: readonly string[]): Promise<void> {
    const lane = slowRepositories.has(repository) ? slow : fast;
    let at = now();
    const reading = await inLane(lane, gitHostOf(repository), async () => {
      if (ended.signal.aborted) return null;
      const since = Date.now();
      at = now();
      const said = await deps.readRef(repository, ref);
      remember(repository, said.kind === 'unreadable' || Date.now() - since > SLOW_MS);
      return said;
    });
    if (reading !== null) await Promise.all(modules.map((module) => recording.add({ module, reading, asked: { repository, ref, at } })));
  }

  function remember(repository: string, isSlow: boolean): void {
    if (!isSlow) slowRepositories.delete(repository);
    else if (slowRepositories.size < MOST_SLOW_REMEMBERED) slowRepositories.add(repository);
  }

  async function keepReading(): Promise<void> {
    // Ends by its pauses: each event begins them anew, and none of them is without an event.
    while (!ended.signal.aborted) {
      await readDue().catch((error: unknown) =>
        log.warn({ err: error }, 'the sources that an event named could not be read; the schedule reads them'),
      );
      const pauseMs = EXPECTING_PAUSES_MS[step];
      if (pauseMs === undefined) return;
      step += 1;
      await pause(pauseMs, undefined, { signal: AbortSignal.any([ended.signal, interrupt.signal]) }).catch(() => undefined);
    }
  }

  return {
    readDue,
    async expect(modules) {
      await expectChange(db, modules, now());
      step = 0;
      interrupt.abort();
      interrupt = new AbortController();
      expecting ??= keepReading().finally(() => {
        expecting = null;
      });
    },
    async stop() {
      ended.abort();
      await within(PASS_WITHIN_MS, Promise.all([...going.keys(), expecting, renewing.stop()]));
    },
  };
}

interface Lane {
  readonly all: Limit;
  readonly hosts: Map<string, Limit>;
  /** Whoever takes longer gives up its place and goes on: its own time-out bounds how many those are. */
  readonly holdsMs: number;
}

/** The host's turn first: who waits for a busy host holds no place that another host could use. */
async function inLane<T>(lane: Lane, host: string, work: () => Promise<T>): Promise<T> {
  const inTurn = async (): Promise<{ result: Promise<T> }> =>
    await lane.all.run(async () => {
      const result = work();
      await (Number.isFinite(lane.holdsMs) ? within(lane.holdsMs, result) : result);
      return { result };
    });
  // Files of this machine need no sparing.
  if (host === 'local') return await (await inTurn()).result;
  let own = lane.hosts.get(host);
  if (own === undefined) {
    own = createLimit(AT_A_TIME_PER_HOST);
    lane.hosts.set(host, own);
  }
  return await (await own.run(inTurn)).result;
}

function group(due: readonly DueSource[]): Array<{ asked: Asked; modules: string[] }> {
  const groups = new Map<string, { asked: Asked; modules: string[] }>();
  for (const { module, repository, ref } of due) {
    const key = `${repository}\n${ref}`;
    const found = groups.get(key);
    if (found === undefined) groups.set(key, { asked: { repository, ref }, modules: [module] });
    else found.modules.push(module);
  }
  return [...groups.values()];
}

async function within(timeoutMs: number, what: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([what, pause(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
}
