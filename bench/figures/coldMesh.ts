import { compare } from '../../src/domain/comparison';
import { defaultTimes } from '../../src/domain/times';
import { recordAnswer } from '../../src/inventory/answers';
import type { Db } from '../../src/inventory/db';
import { lookAtUnreadAgain, readManyFacts, recordComparisons } from '../../src/inventory/modules';
import { openInspection } from '../../src/inventory/requests';
import { type Benchmark, elapsedMs, median } from '../figure';
import { SEED_COMMIT, withServers } from '../mesh';

const SMALL = 1_000;
const LARGE = 10_000;
const RUNS = 21;
const AT_ONCE = 500;

/**
 * A mesh that nobody has built yet, half of it inspected: each of those imports something of outside, and waits for the other half to be read. One
 * more inspection is taken in, what waits is looked at, and five hundred are compared.
 */
export const coldMesh: Benchmark = {
  figures: ['reading-10k-over-1k'],
  run: async ({ print, say }) => {
    const [small, large] = [await measured(SMALL, say), await measured(LARGE, say)];
    print({ name: 'reading-10k-over-1k', value: large, unit: 'ms', reference: { name: 'at 1,000 modules', value: small } });
  },
};

async function measured(count: number, say: (text: string) => void): Promise<number> {
  const found = await withServers(
    ['postgres'],
    () => undefined,
    async ({ db }) => {
      await seedUnread(db, count);
      await inspectHalf(db);
      await compareAll(db);
      return await oneMore(db);
    },
  );
  say(`${count} modules: ${found.toFixed(1)} ms`);
  return found;
}

async function seedUnread(db: Db, count: number): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query('set local session_replication_role = replica');
    await tx.query(
      `insert into module (name, repository, ref, head_commit, head_since, stale_since, is_settling, read_at, next_read_at)
       select 'm' || lpad(n::text, 5, '0'), 'file:///nowhere/' || n, 'refs/heads/main', $2, now(), now(), true, now(), now() + interval '1 day'
       from generate_series(0, $1::int - 1) n`,
      [count, SEED_COMMIT],
    );
  });
  await db.query('analyze module');
}

/** Even ones, in one statement; the triggers make the graph of it. */
async function inspectHalf(db: Db): Promise<void> {
  await db.query(
    `insert into inspection (module, commit, request_id, outcome, manifest, imports, answered_at)
     select name, head_commit, 'seed', 'valid', jsonb_build_object('module', name),
       '[{"language": "go", "name": "world.org/json", "candidates": ["world.org/json", "world.org"], "test": false, "file": "a.go", "line": 1}]', now()
     from module where right(name, 1) in ('0', '2', '4', '6', '8')`,
  );
  await db.query('analyze');
}

async function compareAll(db: Db): Promise<void> {
  const rows = await db.query<{ name: string }>('select name from module order by name');
  for (let from = 0; from < rows.length; from += AT_ONCE) await compareThose(db, rows.slice(from, from + AT_ONCE));
}

async function compareThose(db: Db, rows: ReadonlyArray<{ readonly name: string }>): Promise<void> {
  const now = new Date();
  const facts = await readManyFacts(
    db,
    rows.map(({ name }) => name),
    now,
    defaultTimes,
  );
  await recordComparisons(
    db,
    facts.map((one) => compare(one, defaultTimes)),
    now,
  );
}

async function oneMore(db: Db): Promise<number> {
  const waiting = await db.query<{ name: string }>('select name from module where unread is not null order by name limit $1', [AT_ONCE]);
  if (waiting.length !== AT_ONCE) throw new Error(`${AT_ONCE} modules ought to wait for code to be read, and ${waiting.length} do`);
  const unread = await db.query<{ name: string }>('select name from unread order by name limit $1', [RUNS]);
  const runs: number[] = [];
  for (const { name } of unread) {
    const request = (await openInspection(db, name, SEED_COMMIT)) ?? '';
    const answer = {
      v: 1,
      request,
      attempt: 1,
      builder: 'bench',
      startedAt: '2026-11-29T12:00:00.000Z',
      endedAt: '2026-11-29T12:00:01.000Z',
    } as const;
    const said = { kind: 'inspect', outcome: 'valid', manifest: { module: name } } as const;
    runs.push(
      await elapsedMs(async () => {
        await recordAnswer(db, { ...answer, ...said, exports: [], imports: [], notes: [] }, new Date(), defaultTimes);
        await lookAtUnreadAgain(db, AT_ONCE);
        await compareThose(db, waiting);
      }),
    );
  }
  return median(runs);
}
