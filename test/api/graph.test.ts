/** Asking about the graph over the real store: tree, plan, why, and what one module says of itself. */
import { failure, moduleAnswer, statusAnswer, whyAnswer } from '../../src/schema/api';
import { graphAnswer, planAnswer } from '../../src/schema/graphApi';
import { apiOfFile } from '../support/api';
import { addEdges, aGraph, inspected } from '../support/edges';
import { COMMITS, inStep, situate } from '../support/meshes';

const api = apiOfFile();

async function graph(query = ''): Promise<string[]> {
  const { edges } = graphAnswer.parse((await api.call('GET', `/api/v1/graph${query}`)).body);
  return edges.map(
    (edge) => `${edge.module} > ${edge.input}${edge.isTest ? '?' : ''} ${edge.evidence[0]?.file ?? ''}:${edge.evidence[0]?.line ?? 0}`,
  );
}

describe('the graph', () => {
  test('holds every edge once, with its first place, code before tests', async () => {
    await aGraph(api.db);
    expect(await graph()).toEqual([
      'board-types > core types.go:3',
      'kiosk > board-types web/main.ts:1',
      'meshboard > board-types board/board.go:7',
      'meshboard > core main.go:12',
      'probe > core? probe_test.go:5',
    ]);
    await addEdges(api.db, 'probe > core z.go:1 example.com/core/b');
    const { edges } = graphAnswer.parse((await api.call('GET', '/api/v1/graph')).body);
    expect(edges.at(-1)).toMatchObject({
      module: 'probe',
      isTest: false,
      names: 2,
      evidence: [{ file: 'z.go' }, { file: 'probe_test.go', isTest: true }],
    });
  });

  test('of one module goes outwards or inwards, at whatever distance', async () => {
    await aGraph(api.db);
    expect(await graph('?module=kiosk')).toEqual(['board-types > core types.go:3', 'kiosk > board-types web/main.ts:1']);
    expect(await graph('?module=board-types&direction=inbound')).toEqual([
      'kiosk > board-types web/main.ts:1',
      'meshboard > board-types board/board.go:7',
    ]);
    const { modules } = graphAnswer.parse((await api.call('GET', '/api/v1/graph?module=site')).body);
    expect(modules).toEqual([{ module: 'site', situation: 'in step', inStep: true }]);
  });

  test('names its cycles, and those of tests are none', async () => {
    await aGraph(api.db);
    await addEdges(api.db, 'core > probe? core_test.go:1', 'core > meshboard c.go:1');
    const { cycles } = graphAnswer.parse((await api.call('GET', '/api/v1/graph')).body);
    expect(cycles).toEqual([['board-types', 'core', 'meshboard', 'board-types']]);
  });

  test('of a module that is not there is answered with the one that was meant', async () => {
    await aGraph(api.db);
    for (const path of ['graph?module=cor', 'plan?if=cor']) {
      const { status, body } = await api.call('GET', `/api/v1/${path}`);
      expect([status, failure.parse(body).error]).toEqual([404, 'there is no module cor: did you mean core?']);
    }
    expect((await api.call('GET', '/api/v1/graph?direction=upwards')).status).toBe(400);
  });
});

describe('the plan', () => {
  test('follows a change along the edges', async () => {
    await aGraph(api.db);
    await situate(api.db, {
      module: 'core',
      head: COMMITS.moving,
      situation: 'building',
      next: 'build',
      line: '',
      reason: 'source moved to 4f2c1a9',
    });
    await api.db.query(`insert into node (name, broker_user) values ('alpha', 'node-alpha')`);
    await api.db.query(`insert into placement (module, node) values ('kiosk', 'alpha')`);
    const { steps } = planAnswer.parse((await api.call('GET', '/api/v1/plan')).body);
    expect(steps.map((step) => [step.level, step.module, step.nodes, step.afterwards])).toEqual([
      [1, 'core', [], null],
      [2, 'board-types', [], null],
      [2, 'probe', [], null],
      [3, 'kiosk', ['alpha'], 'ask'],
      [3, 'meshboard', [], null],
    ]);
  });

  test('of a change that is only supposed begins there, though nothing is to be done', async () => {
    await aGraph(api.db);
    expect(planAnswer.parse((await api.call('GET', '/api/v1/plan')).body).steps).toEqual([]);
    const { steps, supposed } = planAnswer.parse((await api.call('GET', '/api/v1/plan?if=board-types')).body);
    expect([supposed, steps.map((step) => step.module)]).toEqual(['board-types', ['board-types', 'kiosk', 'meshboard']]);
  });
});

describe('one module', () => {
  test('says what it exports, builds on, is built on by, and what is not known', async () => {
    await aGraph(api.db);
    await inspected(api.db, 'core', { exports: [{ language: 'go', name: 'example.com/core', artifact: 'core', file: 'go.mod', line: 1 }] });
    const imported = (name: string, file: string) => ({ language: 'go', name, candidates: [name, 'example.com/core'], test: false, file, line: 3 });
    await inspected(api.db, 'board-types', {
      exports: [{ language: 'go', name: 'example.com/board-types', artifact: 'types', file: 'go.mod', line: 1 }],
      imports: [imported('example.com/core/x', 'types.go'), { ...imported('golang.org/x/sys', 'sys.go'), candidates: ['golang.org/x/sys'] }],
      unknown: [{ kind: 'unparsed', file: 'bad.go', line: 9, reason: 'expected declaration' }],
    });
    const { graph: said, row } = moduleAnswer.parse((await api.call('GET', '/api/v1/modules/board-types')).body);
    expect(said).toMatchObject({
      exports: [{ language: 'go', name: 'example.com/board-types', artifact: 'types', file: 'go.mod', line: 1 }],
      inputs: [{ input: 'core', evidence: [{ name: 'example.com/core', artifact: 'core', file: 'types.go', line: 3 }] }],
      dependants: [{ module: 'kiosk' }, { module: 'meshboard' }],
      outside: 1,
      unknown: [{ kind: 'unparsed', file: 'bad.go', line: 9, reason: 'expected declaration' }],
    });
    expect(row).toMatchObject({ buildsOn: { first: ['core'], count: 1 }, builtOnBy: { first: ['kiosk', 'meshboard'], count: 2 } });
  });

  test('names the first of many that build on it, and counts all', async () => {
    await inStep(api.db, 'core');
    for (let at = 0; at < 20; at += 1) await inStep(api.db, `m-${10 + at}`);
    await addEdges(api.db, ...Array.from({ length: 20 }, (_, at) => `m-${10 + at} > core a.go:1`));
    const { modules } = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body);
    expect(modules.find((row) => row.module === 'core')?.builtOnBy).toEqual({
      first: Array.from({ length: 8 }, (_, at) => `m-${10 + at}`),
      count: 20,
    });
    expect(modules.find((row) => row.module === 'm-10')).toMatchObject({
      buildsOn: { first: ['core'], count: 1 },
      builtOnBy: { first: [], count: 0 },
    });
  });

  test('is asked why with the chains in its answer', async () => {
    await aGraph(api.db);
    const { chain } = whyAnswer.parse((await api.call('GET', '/api/v1/modules/meshboard/why')).body);
    expect(Array.isArray(chain)).toBe(true);
  });
});
