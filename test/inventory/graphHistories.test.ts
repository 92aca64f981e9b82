import fc from 'fast-check';
import { compare } from '../../src/domain/comparison';
import { addModule, type Db, openInspection, readManyFacts, recordAnswer, recordReading, recordReadings, removeModule } from '../../src/inventory';
import { lookAtUnreadAgain, recordComparisons } from '../../src/inventory/modules';
import { answerFailed, answerFit, type Code, inspectCode, moduleWith, type Opened, open } from './graphMesh';
import { type Graph, keptGraph, Scratch } from './graphScratch';
import { commitOf, openStore, read, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());
beforeEach(() => db.query('delete from module'));

const MODULES = ['a', 'b', 'b-c', 'd', 'e'];
const NAMES = ['x.org/a', 'x.org/b', 'x.org/b-c', 'x.org/b/v2', 'x.org/b/sub', 'x.org/d'];

type Step =
  | { readonly kind: 'head'; readonly module: string; readonly letter: string; readonly code: Code | 'invalid' | null }
  | { readonly kind: 'open'; readonly module: string; readonly again: boolean }
  | { readonly kind: 'answer'; readonly which: number; readonly content: string | null }
  | { readonly kind: 'remove' | 'unreadable'; readonly module: string };

const anyModule = fc.constantFrom(...MODULES);
const code: fc.Arbitrary<Code> = fc.record({
  exports: fc.uniqueArray(
    fc.tuple(fc.constantFrom('out', 'more'), fc.constantFrom(...NAMES)).map(([artifact, name]) => `${artifact}=${name}`),
    { maxLength: 2, selector: (text) => text.split('=')[1] },
  ),
  imports: fc.uniqueArray(
    fc.tuple(fc.constantFrom('', '', '', 'test:'), fc.constantFrom(...NAMES), fc.constantFrom('', '/p')).map((parts) => parts.join('')),
    { maxLength: 3 },
  ),
  unparsed: fc.constantFrom([], [], [], ['a.go'], ['go.mod']),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('head' as const),
      module: anyModule,
      letter: fc.constantFrom('a', 'b', 'c'),
      code: fc.oneof({ weight: 8, arbitrary: code }, { weight: 1, arbitrary: fc.constantFrom('invalid' as const, null) }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('open' as const), module: anyModule, again: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('answer' as const), which: fc.nat(8), content: fc.constantFrom('1', '1', '2', '3', null) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('remove' as const, 'unreadable' as const), module: anyModule }) },
);

class History {
  private opened: Opened[] = [];

  /** A step that is not possible now is none. */
  async take(next: Step): Promise<void> {
    if (next.kind === 'head') await this.head(next);
    if (next.kind === 'open') await this.open(next);
    if (next.kind === 'answer') await this.answer(next);
    if (next.kind === 'unreadable') await recordReading(db, next.module, { kind: 'unreadable', reason: 'no route to host' }, tick(), times);
    if (next.kind === 'remove') await removeModule(db, next.module, { who: 'ada', why: 'test' }).catch(() => undefined);
  }

  private async head({ module: name, letter, code: content }: Extract<Step, { kind: 'head' }>): Promise<void> {
    if ((await db.query('select from module where name = $1', [name])).length === 0)
      await addModule(db, { name, repository: `file:///${name}.git`, ref: 'main' });
    await read(db, name, commitOf(letter));
    if (content === null) return;
    if (content !== 'invalid') return await inspectCode(db, name, commitOf(letter), content);
    const request = await openInspection(db, name, commitOf(letter));
    if (request === null) return;
    const answer = { v: 1, request, attempt: 1, builder: 'b', startedAt: '2026-11-29T12:00:00.000Z', endedAt: '2026-11-29T12:00:00.000Z' } as const;
    const problems = [{ file: 'module.yaml', line: 1, key: '', message: 'no' }];
    await recordAnswer(db, { ...answer, kind: 'inspect', outcome: 'invalid', problems }, tick(), times);
  }

  /** As a comparison would: what is in a cycle or in conflict is not built. */
  private async open({ module: name, again }: Extract<Step, { kind: 'open' }>): Promise<void> {
    if (again) await db.query('update module set again_at = now() where name = $1', [name]);
    const ready = await db.query(
      `select from module m join inspection i on i.module = m.name and i.commit = m.head_commit and i.outcome = 'valid'
       where m.name = $1 and m.closure is not null and not m.is_in_cycle and m.conflicts = '[]'
         and (m.again_at is not null or not exists (select from build b where b.module = m.name and b.closure = m.closure and b.verdict is not null))`,
      [name],
    );
    if (ready.length > 0) this.opened.push(await open(db, name));
  }

  private async answer({ which, content }: Extract<Step, { kind: 'answer' }>): Promise<void> {
    const [opened] = this.opened.splice(which % Math.max(this.opened.length, 1), 1);
    if (opened === undefined) return;
    if (content === null) await answerFailed(db, opened);
    else await answerFit(db, opened, { out: content, more: '0' });
  }
}

const nothing: Code = { exports: [], imports: [], unparsed: [] };

/** Found once: a head that moves back to what is inspected, and one missing input that comes where another is missing still. */
const FOUND: Array<[Step[]]> = [
  [
    [
      { kind: 'head', module: 'e', letter: 'a', code: nothing },
      { kind: 'head', module: 'e', letter: 'c', code: null },
      { kind: 'head', module: 'b', letter: 'a', code: { ...nothing, imports: ['x.org/a'] } },
      { kind: 'head', module: 'e', letter: 'a', code: nothing },
    ],
  ],
  [
    [
      { kind: 'head', module: 'b-c', letter: 'a', code: { ...nothing, imports: ['x.org/b-c', 'x.org/a'] } },
      { kind: 'head', module: 'a', letter: 'a', code: { ...nothing, exports: ['out=x.org/b-c'], imports: ['x.org/a'] } },
      { kind: 'open', module: 'a', again: false },
      { kind: 'head', module: 'd', letter: 'a', code: { ...nothing, exports: ['out=x.org/a'] } },
      { kind: 'answer', which: 0, content: '1' },
    ],
  ],
];

interface Seen {
  readonly version: number;
  /** For code to be read. */
  readonly isWaiting: boolean;
  readonly facts: string;
}

/** Of each module what a comparison would see, without the times of what goes on by itself. */
async function seen(): Promise<Map<string, Seen>> {
  const all = await readManyFacts(db, MODULES, new Date(0), times);
  return new Map(
    all.map((one) => {
      const { version, graph, closure, headBuild, effective, module: name } = one;
      const settling = graph.settling.map((input) => [input.module, input.path]);
      return [
        name,
        {
          version,
          isWaiting: compare(one, times).unread !== null,
          facts: JSON.stringify([
            { ...graph, settling, openImport: null, staleSince: null, missing: graph.missing.map((one) => ({ ...one, since: null })) },
            closure,
            headBuild,
            effective,
          ]),
        },
      ];
    }),
  );
}

async function compareAll(): Promise<void> {
  const all = await readManyFacts(db, MODULES, new Date(), times);
  await recordComparisons(
    db,
    all.map((facts) => compare(facts, times)),
    new Date(),
  );
}

it('kept step by step the graph is the one made from scratch, whatever happened, and no change of it goes untold', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      await db.query('delete from module');
      const scratch = new Scratch(db);
      const history = new History();
      let before = await seen();
      for (const next of steps) {
        await compareAll();
        await history.take(next);
        await lookAtUnreadAgain(db, 100);
        expect(await keptGraph(db)).toEqual(await scratch.graph());
        const after = await seen();
        for (const [name, { version, isWaiting, facts }] of after) {
          const then = before.get(name);
          if (then === undefined || then.version !== version) continue;
          expect({ name, facts }).toEqual({ name, facts: then.facts });
          // That one more may export it is no news to whom waits; that none is left is.
          if (then.isWaiting) expect({ name, isWaiting }).toEqual({ name, isWaiting: true });
        }
        before = after;
      }
      const kept = await keptGraph(db);
      await db.query('select settle_graph(array(select name from module))');
      expect(await keptGraph(db)).toEqual(kept);
    }),
    { numRuns: Number(process.env.RUNS ?? 40), examples: FOUND },
  );
}, 300_000);

/** Every module exports a name of its own and imports some of the others', a few of them in tests only. */
function codes(count: number, random: () => number): Code[] {
  return Array.from({ length: count }, (_, i) => ({
    exports: [`x.org/m${i}`],
    imports: Array.from({ length: 3 }, () => {
      const other = Math.floor(random() * Math.max(i, 1));
      return `${random() < 0.1 ? 'test:' : ''}x.org/m${other}/p`;
    }),
  }));
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

async function index(order: readonly number[], all: readonly Code[]): Promise<Graph> {
  await db.query('delete from module');
  await db.query(`insert into module (name, repository, ref) select 'm' || n, 'file:///' || n, 'main' from unnest($1::int[]) n`, [order]);
  await recordReadings(
    db,
    order.map((n) => ({ module: `m${n}`, reading: { kind: 'head', commit: commitOf('a') } })),
    tick(),
    times,
  );
  for (let from = 0; from < order.length; from += 8) {
    await Promise.all(order.slice(from, from + 8).map((n) => inspectCode(db, `m${n}`, commitOf('a'), all[n] ?? {})));
  }
  return await keptGraph(db);
}

it('five hundred modules inspected in any order, eight at a time, are one graph', async () => {
  const random = seeded(4);
  const all = codes(500, random);
  const order = all.map((_, i) => i);
  const shuffled = order
    .map((n) => [random(), n] as const)
    .sort(([a], [b]) => a - b)
    .map(([, n]) => n);
  const cold = await index(order, all);
  expect(cold.edges.length).toBeGreaterThan(1_000);
  expect(await index(shuffled, all)).toEqual(cold);
  // Warm: everything is inspected again at another commit, and says the same.
  for (const n of [3, 250, 499]) await moduleWith(db, `m${n}`, 'b', all[n] ?? {});
  expect((await keptGraph(db)).edges).toEqual(cold.edges);
}, 300_000);
