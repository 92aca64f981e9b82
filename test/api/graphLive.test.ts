/** Plan, why and verbs over a graph that the store made of inspections and builds, compared as the control plane does it. */
import { compare } from '../../src/domain/comparison';
import { defaultTimes } from '../../src/domain/times';
import { addModule, listModules, recordReading } from '../../src/inventory';
import { readManyFacts, recordComparisons } from '../../src/inventory/modules';
import { doneAnswer, moduleAnswer, statusAnswer, whyAnswer } from '../../src/schema/api';
import { planAnswer } from '../../src/schema/graphApi';
import { answerFit, buildFailed, buildFit, moduleWith, open } from '../inventory/graphMesh';
import { tick } from '../inventory/store';
import { apiOfFile } from '../support/api';

const api = apiOfFile();

/** core ← board-types ← meshboard, which imports core as well; all fit. */
async function settled(): Promise<void> {
  await moduleWith(api.db, 'core', 'a', { exports: ['x.org/core'] });
  await moduleWith(api.db, 'board-types', 'a', { exports: ['x.org/types'], imports: ['x.org/core'] });
  await moduleWith(api.db, 'meshboard', 'a', { imports: ['x.org/other', 'x.org/types', 'x.org/core/deep'] });
  for (const module of ['core', 'board-types', 'meshboard']) await buildFit(api.db, module);
}

async function compareAll(): Promise<void> {
  const names = (await listModules(api.db)).map((module) => module.name);
  // By the clock of the answers that were recorded: patience is counted from them.
  const now = tick();
  const facts = await readManyFacts(api.db, names, now, defaultTimes);
  await recordComparisons(
    api.db,
    facts.map((one) => compare(one, defaultTimes)),
    now,
  );
}

async function plan(query = ''): Promise<string[]> {
  await compareAll();
  const { steps } = planAnswer.parse((await api.call('GET', `/api/v1/plan${query}`)).body);
  return steps.map(
    (step) =>
      `${step.level} ${step.what} ${step.module}${step.after.length > 0 ? ` after ${step.after.join(',')}` : ''}${step.unless.length > 0 ? ` unless ${step.unless.join(',')}` : ''}`,
  );
}

async function chains(module: string): Promise<string[]> {
  const { chain } = whyAnswer.parse((await api.call('GET', `/api/v1/modules/${module}/why`)).body);
  return chain.map(({ kind, says }) => `${kind}: ${says.replace(/sha256:[0-9a-f]{7}…/g, 'DIGEST').replace(/\d{4}-\S+Z/g, 'TIME')}`);
}

async function cutOff(): Promise<string[]> {
  const { modules } = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body);
  return modules.filter((row) => row.cutOffAt !== null).map((row) => row.module);
}

test('what is settled has nothing to be done, and no chain', async () => {
  await settled();
  expect(await plan()).toEqual([]);
  expect(await chains('meshboard')).toEqual([]);
});

test('a new head of core is inspected, built, and followed by its dependants, as long as it does not come out the same', async () => {
  await settled();
  await api.db.query(`update module set head_commit = repeat('b', 40), head_since = now() where name = 'core'`);
  expect(await plan()).toEqual([
    '1 inspect core',
    expect.stringMatching(/^2 build board-types after core/),
    expect.stringMatching(/^3 build meshboard after/),
  ]);
  await moduleWith(api.db, 'core', 'b', { exports: ['x.org/core'] });
  expect(await plan()).toEqual([
    '1 build core',
    '2 build board-types after core unless core',
    '3 build meshboard after board-types,core unless core',
  ]);
  expect(await chains('core')).toEqual(['source: core: source moved aaaaaaa → bbbbbbb']);
  expect(await cutOff()).toEqual([]);
  await buildFit(api.db, 'core');
  expect(await plan()).toEqual([]);
  expect(await cutOff()).toEqual(['core']);
  await api.db.query(`update build set answered_at = answered_at - interval '2 hours'`);
  expect(await cutOff()).toEqual([]);
});

test('a core that came out otherwise is the reason that its dependants name, down to the place of the import', async () => {
  await settled();
  await moduleWith(api.db, 'core', 'b', { exports: ['x.org/core'] });
  await buildFit(api.db, 'core', 'core, otherwise');
  expect(await plan()).toEqual(['1 build board-types', '2 build meshboard after board-types']);
  expect(await chains('board-types')).toEqual(['moved: board-types ← core (a.go:1): core/out moved DIGEST → DIGEST, commit bbbbbbb']);
  expect(await chains('meshboard')).toEqual([
    'moved: meshboard ← core (a.go:3): core/out moved DIGEST → DIGEST, commit bbbbbbb',
    expect.stringMatching(
      /^waiting: meshboard ← board-types \(a\.go:2\): board-types \(waiting for its inputs\) has not settled since TIME, last progress TIME$/,
    ),
  ]);
  expect((await plan('?if=board-types'))[0]).toBe('1 build board-types');
});

test('a head that failed says in what it differs from the build that is effective', async () => {
  await settled();
  await moduleWith(api.db, 'core', 'b', { exports: ['x.org/core'] });
  await buildFit(api.db, 'core', 'core, otherwise');
  await buildFailed(api.db, 'board-types');
  const moved = 'moved: board-types ← core (a.go:1): core/out moved DIGEST → DIGEST, commit bbbbbbb';
  expect(await chains('board-types')).toEqual([moved]);
  await moduleWith(api.db, 'board-types', 'b', { exports: ['x.org/types'], imports: ['x.org/core'] });
  await buildFailed(api.db, 'board-types');
  expect(await chains('board-types')).toEqual(['source: board-types: source moved aaaaaaa → bbbbbbb', moved]);
  await moduleWith(api.db, 'core', 'c', { exports: ['x.org/renamed'] });
  await buildFit(api.db, 'core', 'core, renamed');
  await buildFailed(api.db, 'board-types');
  expect((await chains('board-types'))[1]).toBe('gone: board-types ← core: core/out is no input any more; it was built with DIGEST');
  await moduleWith(api.db, 'core', 'd', { exports: ['x.org/renamed'] });
  expect(await plan()).toContainEqual('1 build core');
  const { standing } = planAnswer.parse((await api.call('GET', '/api/v1/plan')).body);
  expect(standing).toEqual([{ module: 'board-types', situation: 'failed' }]);
});

test('a module says which of its names a head that is not fit has given up, and which nobody can build on before it is', async () => {
  await settled();
  const exports = async (): Promise<string[]> => {
    const { graph } = moduleAnswer.parse((await api.call('GET', '/api/v1/modules/core')).body);
    return graph.exports.map(({ name, artifact, state }) => `${name} as ${artifact} ${state}`);
  };
  expect(await exports()).toEqual(['x.org/core as out carried']);
  await moduleWith(api.db, 'core', 'b', { exports: ['x.org/kernel'] });
  expect(await exports()).toEqual(['x.org/core as out kept', 'x.org/kernel as out awaited']);
  await buildFailed(api.db, 'core');
  await moduleWith(api.db, 'core', 'c', { exports: ['more=x.org/core'] });
  expect(await exports()).toEqual(['x.org/core as out kept']);
  await buildFit(api.db, 'core', { more: 'core elsewhere' });
  expect(await exports()).toEqual(['x.org/core as more carried']);
});

test('a head that failed for want of a module that never could be read says which that may be', async () => {
  await addModule(api.db, { name: 'gone', repository: 'file:///gone.git', ref: 'main' });
  await recordReading(api.db, 'gone', { kind: 'unreadable', reason: 'repository not found' }, tick(), defaultTimes);
  await moduleWith(api.db, 'user', 'a', { imports: ['x.org/gone'] });
  await buildFailed(api.db, 'user');
  await compareAll();
  const why = async (): Promise<readonly string[]> => whyAnswer.parse((await api.call('GET', '/api/v1/modules/user/why')).body).facts;
  expect(await why()).toContain('not known: nobody exports x.org/gone (a.go:1); gone (unreadable) may, and could never be read');
  await moduleWith(api.db, 'gone', 'a', { exports: ['x.org/gone'] });
  expect((await why()).join('\n')).not.toContain('not known');
});

test('a member of a cycle whose head was judged before says that it lies in one, and what comes of it', async () => {
  await settled();
  await moduleWith(api.db, 'core', 'b', { exports: ['x.org/core'], imports: ['x.org/types'] });
  await compareAll();
  expect(await chains('core')).toContain('cycle: core ← board-types (a.go:1) ← core (a.go:1): a cycle: take one of these imports out');
  const { body } = await api.call('GET', '/api/v1/modules/board-types/why');
  expect(whyAnswer.parse(body)).toMatchObject({ inStep: true, situation: 'in step' });
  expect(await chains('board-types')).toEqual([
    'cycle: board-types ← core (a.go:1) ← board-types (a.go:1): a cycle: its next change is not built until one of these imports is gone',
  ]);
  const cycleOf = async (module: string) => moduleAnswer.parse((await api.call('GET', `/api/v1/modules/${module}`)).body).graph.cycle;
  expect(await cycleOf('board-types')).toEqual(['board-types', 'core', 'board-types']);
  // What builds on a cycle lies in none.
  expect(await cycleOf('meshboard')).toBeNull();
  expect((await chains('meshboard')).filter((says) => says.startsWith('cycle'))).toEqual([]);
});

test('who removes a module is told what imported it', async () => {
  await settled();
  const removed = await api.call('DELETE', '/api/v1/modules/core', { why: 'not needed' });
  expect(doneAnswer.parse(removed.body).says).toBe(
    'core is no longer tracked; its nodes are told to remove it; board-types and 1 more imported it and are built without it: tally why board-types',
  );
  expect(doneAnswer.parse((await api.call('DELETE', '/api/v1/modules/meshboard', { why: 'neither' })).body).says).toBe(
    'meshboard is no longer tracked; its nodes are told to remove it',
  );
});

test('an input that never was fit, a cycle, a name exported twice, and a file that does not parse are each named', async () => {
  await moduleWith(api.db, 'core', 'a', { exports: ['x.org/core'] });
  await buildFailed(api.db, 'core');
  await moduleWith(api.db, 'lib', 'a', { imports: ['x.org/core'], unparsed: ['bad.go'] });
  expect(await chains('lib')).toEqual([
    expect.stringMatching(/^unparsed: lib: not parsed: bad\.go:3 .*; the edges of before stay in force$/),
    expect.stringMatching(/^missing: lib ← core \(a\.go:1\): core .*, since TIME; it needs a person$/),
  ]);
  await moduleWith(api.db, 'a', 'a', { exports: ['x.org/a'], imports: ['x.org/b'] });
  await moduleWith(api.db, 'b', 'a', { exports: ['x.org/b'], imports: ['x.org/a'] });
  expect(await chains('a')).toEqual([expect.stringMatching(/^cycle: a ← b \(a\.go:1\) ← a \(a\.go:1\): a cycle/)]);
  await moduleWith(api.db, 'second', 'a', { exports: ['x.org/core'] });
  expect(await chains('second')).toEqual(['conflict: second ← core: core exported x.org/core before this one: rename it in one of the two']);
  await compareAll();
  const { row, graph } = moduleAnswer.parse((await api.call('GET', '/api/v1/modules/a')).body);
  expect(row).toMatchObject({
    urgency: 'needs you',
    situation: 'cycle',
    remedy: 'tally graph a',
    headline: expect.stringMatching(/^cycle: a → b → a /),
  });
  expect(graph.inputs.map((edge) => edge.input)).toEqual(['b']);
});

test('what is building already is in the plan once, and its dependants wait for it', async () => {
  await settled();
  await moduleWith(api.db, 'core', 'b', { exports: ['x.org/core'] });
  await open(api.db, 'core');
  expect(await plan()).toEqual([
    '1 build core',
    '2 build board-types after core unless core',
    '3 build meshboard after board-types,core unless core',
  ]);
});

test('what a builder has taken while its input moves is in the plan twice', async () => {
  await settled();
  await moduleWith(api.db, 'board-types', 'b', { exports: ['x.org/types'], imports: ['x.org/core'] });
  const { id } = await open(api.db, 'board-types');
  await api.db.query(`update request set state = 'taken', taken_by = 'b-1', taken_at = now(), beat_at = now() where id = $1`, [id]);
  await moduleWith(api.db, 'core', 'b', { exports: ['x.org/core'] });
  expect(await plan()).toEqual([
    '1 build board-types',
    '1 build core',
    '2 build board-types after core unless core',
    '3 build meshboard after board-types,core unless board-types,core',
  ]);
});

test('a build that came out otherwise with the same inputs is said to be not reproducible, and not to be cut off', async () => {
  await settled();
  await api.db.query(`update module set again_at = now() where name = 'core'`);
  await answerFit(api.db, await open(api.db, 'core'), 'core, at another minute');
  await compareAll();
  expect(await cutOff()).toEqual([]);
  const { modules } = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body);
  expect(modules.filter((row) => row.notReproducible).map((row) => row.module)).toEqual(['core']);
  expect(moduleAnswer.parse((await api.call('GET', '/api/v1/modules/core')).body).row.notReproducible).toBe(true);
  const { facts } = whyAnswer.parse((await api.call('GET', '/api/v1/modules/core/why')).body);
  expect(facts).toContainEqual(expect.stringMatching(/^not reproducible: aaaaaaa was built again with the same inputs/));
});
