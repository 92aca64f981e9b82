import fc from 'fast-check';
import { neighbours, reachable } from '../../src/domain/graph';
import { type Commit, MeshModel } from '../support/meshModel';

let counter = 0;
const commit = (content: number, imports: readonly string[] = [], changes: Partial<Commit> = {}): Commit => {
  counter += 1;
  return { id: counter.toString(16).padStart(40, '0'), content, imports: imports.map((of) => ({ of, isTest: false })), outcome: 'fit', ...changes };
};
const first = (): number => 0;

/** core, two sides that build on it, and a bottom that builds on both. */
function diamond(opaque: readonly string[] = []): MeshModel {
  const mesh = new MeshModel();
  mesh.add('core', commit(1), opaque.includes('core'));
  mesh.add('left', commit(1, ['core']), opaque.includes('left'));
  mesh.add('right', commit(1, ['core']), opaque.includes('right'));
  mesh.add('bottom', commit(1, ['left', 'right']));
  mesh.settleDown(first);
  mesh.taken.clear();
  return mesh;
}

/** Turns of all, and what is open answered, where it is of one of these modules. */
function run(mesh: MeshModel, names: readonly string[]): void {
  for (let round = 0; round < 50; round += 1) {
    for (const name of mesh.modules.keys()) mesh.turn(name);
    const open = mesh.open().find(({ module }) => names.includes(module));
    if (open === undefined) return;
    mesh.answer(open.module, open.request.id);
  }
}

describe('a diamond', () => {
  test('its bottom is built once, from one consistent moment', () => {
    const mesh = diamond();
    mesh.move('core', commit(2));
    run(mesh, ['core', 'left']);
    expect(mesh.turn('bottom')).toMatchObject({ next: { kind: 'wait', on: 'right to settle' } });
    run(mesh, ['right']);
    expect(mesh.turn('bottom').next.kind).toBe('build');
    run(mesh, ['bottom']);
    expect(Object.fromEntries(mesh.taken)).toEqual({ core: 1, left: 1, right: 1, bottom: 1 });
    expect(mesh.turn('bottom').situation).toBe('in step');
  });

  test('a commit that makes the same artifact stops at core', () => {
    const mesh = diamond();
    mesh.move('core', commit(1));
    mesh.settleDown(first);
    expect(Object.fromEntries(mesh.taken)).toEqual({ core: 1 });
  });

  test('where one side is cut off, the bottom is still built once', () => {
    const mesh = diamond(['left']);
    mesh.move('core', commit(2));
    mesh.settleDown((count) => count - 1);
    expect(mesh.taken.get('bottom')).toBe(1);
  });

  test('where one side fails, the bottom is built once with what that side made before', () => {
    const mesh = diamond();
    mesh.move('left', commit(1, ['core'], { outcome: 'failed' }));
    run(mesh, ['left']);
    expect(mesh.turn('bottom').situation).toBe('in step');
    mesh.move('core', commit(2));
    mesh.settleDown(first);
    expect(mesh.turn('left')).toMatchObject({ situation: 'failed', needsPerson: true });
    expect(mesh.turn('bottom').situation).toBe('in step');
    expect(mesh.taken.get('bottom')).toBe(1);
  });

  test('a side that is delayed within patience is waited for; one that is not is gone on without, and the bottom is built once more', () => {
    const mesh = diamond();
    mesh.move('core', commit(2));
    run(mesh, ['core', 'left']);
    mesh.pass(14);
    expect(mesh.turn('bottom').next.kind).toBe('wait');
    mesh.beat('right');
    mesh.pass(14);
    expect(mesh.turn('bottom').next.kind).toBe('wait');
    mesh.pass(1);
    expect(mesh.turn('bottom')).toMatchObject({ next: { kind: 'build' } });
    run(mesh, ['bottom']);
    mesh.settleDown(first);
    expect(mesh.taken.get('bottom')).toBe(2);
    expect(mesh.turn('bottom').situation).toBe('in step');
  });

  test('while core keeps moving the bottom is built when the cap is reached, and at most once more', () => {
    const mesh = diamond();
    const built: number[] = [];
    for (let minute = 0; minute < 110; minute += 5) {
      mesh.move('core', commit(100 + minute));
      // Core and left are done at once; right is always at it when core moves again.
      run(mesh, ['core', 'left']);
      const { next } = mesh.turn('bottom');
      if (next.kind === 'build') {
        run(mesh, ['bottom']);
        built.push(minute);
      }
      mesh.beat('right');
      mesh.pass(5);
    }
    expect(built).toEqual([60]);
    mesh.settleDown(first);
    expect(mesh.taken.get('bottom')).toBe(2);
    expect(mesh.turn('bottom').situation).toBe('in step');
  });

  test('an input that is rebuilt while the bottom is built makes it stale after, not wrong', () => {
    const mesh = diamond();
    mesh.move('core', commit(2));
    run(mesh, ['core', 'left', 'right']);
    const asked = mesh.open().find(({ module }) => module === 'bottom');
    if (asked === undefined) throw new Error('the bottom is not asked for');
    mesh.take('bottom', asked.request.id);
    mesh.move('core', commit(3));
    run(mesh, ['core', 'left', 'right']);
    expect(mesh.turn('bottom').next).toMatchObject({ kind: 'build', requestId: asked.request.id });
    mesh.answer('bottom', asked.request.id);
    expect(mesh.turn('bottom').situation).not.toBe('in step');
    mesh.settleDown(first);
    expect(mesh.taken.get('bottom')).toBe(2);
  });
});

test('slow first commit, fast second, then back to the first: the ref decides, and nothing is built again', () => {
  const mesh = new MeshModel();
  const [one, two] = [commit(1), commit(2)];
  mesh.add('core', one);
  run(mesh, []);
  const inspect = mesh.open()[0];
  mesh.answer('core', inspect?.request.id ?? '');
  mesh.turn('core');
  const slow = mesh.open()[0]?.request.id ?? '';
  mesh.take('core', slow);
  mesh.move('core', two);
  for (let round = 0; round < 9; round += 1) {
    mesh.turn('core');
    const fast = mesh.open().find(({ request }) => request.id !== slow);
    if (fast === undefined) break;
    mesh.answer('core', fast.request.id);
  }
  expect(mesh.of('core').effective?.commit.id).toBe(two.id);
  mesh.answer('core', slow);
  expect(mesh.of('core').effective?.commit.id).toBe(two.id);
  mesh.move('core', one);
  mesh.settleDown(first);
  expect(mesh.of('core').effective?.commit.id).toBe(one.id);
  expect(mesh.taken.get('core')).toBe(2);
});

test('A builds on B while the tests of B import A: both come to rest, A waits for B and B not for A', () => {
  const mesh = new MeshModel();
  mesh.add('b', commit(1));
  mesh.add('a', commit(1, ['b']));
  mesh.settleDown(first);
  mesh.move('b', commit(2, [], { imports: [{ of: 'a', isTest: true }] }));
  mesh.settleDown(first);
  expect([mesh.turn('a').situation, mesh.turn('b').situation]).toEqual(['in step', 'in step']);
});

test('an input that never was fit is waited for as long as it takes, and a person is needed once it has failed', () => {
  const mesh = new MeshModel();
  mesh.add('core', commit(1, [], { outcome: 'failed' }));
  mesh.add('user', commit(1, ['core']));
  run(mesh, ['user']);
  mesh.pass(600);
  expect(mesh.turn('user')).toMatchObject({ next: { kind: 'wait', on: 'core to carry what is imported' }, needsPerson: false });
  mesh.settleDown(first);
  expect(mesh.turn('user')).toMatchObject({ next: { kind: 'wait' }, situation: 'waiting', needsPerson: true });
  mesh.move('core', commit(2));
  mesh.settleDown(first);
  expect(mesh.turn('user').situation).toBe('in step');
});

describe('random meshes', () => {
  const names = ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6'];
  /** What a module imports: only of those before it, so that there is no cycle. */
  const arbImports = (at: number): fc.Arbitrary<string[]> => fc.subarray(names.slice(0, at), { maxLength: Math.min(at, 3) });
  const arbMesh = fc.tuple(...names.map((_, at) => fc.record({ imports: arbImports(at), isOpaque: fc.boolean() })));
  const picks = fc.infiniteStream(fc.nat(1_000));

  type Shape = ReadonlyArray<{ imports: string[]; isOpaque: boolean }>;
  function added(shape: Shape, outcomes: ReadonlyArray<Commit['outcome']> = []): MeshModel {
    const mesh = new MeshModel();
    shape.forEach(({ imports, isOpaque }, at) => {
      mesh.add(names[at] ?? '', commit(1, imports, { outcome: outcomes[at] ?? 'fit' }), isOpaque);
    });
    return mesh;
  }
  function made(shape: Shape): MeshModel {
    const mesh = added(shape);
    mesh.settleDown(first);
    mesh.taken.clear();
    return mesh;
  }
  const picker =
    (stream: fc.Stream<number>) =>
    (count: number): number =>
      (stream.next().value ?? 0) % Math.max(count, 1);

  const arbOutcomes = fc.array(fc.constantFrom('fit' as const, 'fit' as const, 'fit' as const, 'failed' as const), { minLength: 7, maxLength: 7 });
  const arbEvent = fc.oneof(
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('commit' as const),
        at: fc.nat(6),
        content: fc.integer({ min: 1, max: 3 }),
        imports: fc.nat(),
        test: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('back' as const), at: fc.nat(6), to: fc.nat() }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('turn' as const), at: fc.nat(6) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('take' as const), of: fc.nat() }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('answer' as const), of: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass' as const), minutes: fc.integer({ min: 1, max: 40 }) }) },
  );

  test('after any history every module ends current, or failed, invalid or waiting for a person, with a reason', () => {
    fc.assert(
      fc.property(arbMesh, arbOutcomes, fc.array(arbEvent, { maxLength: 60 }), picks, (shape, outcomes, events, stream) => {
        const mesh = added(shape, outcomes);
        const past = new Map(names.map((name) => [name, [mesh.of(name).head]]));
        for (const event of events) {
          const name = names['at' in event ? event.at : 0] ?? '';
          const open = mesh.open();
          if (event.kind === 'commit') {
            const before = names.slice(0, event.at).filter((_, n) => (event.imports >> n) % 2 === 1);
            const outcome = (['fit', 'fit', 'fit', 'failed', 'invalid'] as const)[event.imports % 5] ?? 'fit';
            const made = commit(event.content, [], { imports: before.map((of, n) => ({ of, isTest: event.test && n === 0 })), outcome });
            past.get(name)?.push(made);
            mesh.move(name, made);
          } else if (event.kind === 'back') {
            const known = past.get(name) ?? [];
            const to = known[event.to % known.length];
            if (to !== undefined) mesh.move(name, to);
          } else if (event.kind === 'turn') mesh.turn(name);
          else if (event.kind === 'pass') mesh.pass(event.minutes);
          else {
            const chosen = open[event.of % Math.max(open.length, 1)];
            if (chosen !== undefined) mesh[event.kind](chosen.module, chosen.request.id);
          }
        }
        mesh.settleDown(picker(stream));
        for (const name of names) {
          const found = mesh.turn(name);
          const { head, closure, builds } = mesh.of(name);
          expect(found.reason).not.toBe('');
          expect(found.cancel).toEqual([]);
          if (found.situation === 'waiting') {
            const never = head.imports.map(({ of }) => mesh.of(of)).filter((input) => input.effective === null);
            expect(never).not.toEqual([]);
            // One that waits itself says whom it waits for; at the end of the chain a person is needed.
            expect(found.needsPerson).toBe(never.some((input) => mesh.turn(input.name).situation !== 'waiting'));
          } else expect(found.situation).toBe({ fit: 'in step', failed: 'failed', invalid: 'invalid' }[head.outcome]);
          // Current: its newest answered build is of what its inputs are now.
          if (found.situation === 'in step')
            expect(builds.filter((build) => build.verdict === 'fit').map((build) => build.request.closure)).toContain(closure);
        }
      }),
      { numRuns: 250 },
    );
  }, 60_000);

  test('commits at one moment build each module that they reach once, and no other, in whatever order the answers come', () => {
    fc.assert(
      fc.property(arbMesh, fc.uniqueArray(fc.nat(6), { minLength: 1, maxLength: 3 }), picks, (shape, moved, stream) => {
        const mesh = made(shape);
        for (const at of moved) mesh.move(names[at] ?? '', commit(2, shape[at]?.imports));
        mesh.settleDown(picker(stream));
        const { dependants } = neighbours(shape.flatMap(({ imports }, at) => imports.map((input) => ({ module: names[at] ?? '', input }))));
        const roots = moved.map((at) => names[at] ?? '');
        const affected = [...new Set([...roots, ...reachable(roots, dependants)])];
        expect(Object.fromEntries(mesh.taken)).toEqual(Object.fromEntries(affected.map((name) => [name, 1])));
      }),
      { numRuns: 250 },
    );
  }, 60_000);

  test('a commit that makes the same artifact builds its own module and nothing above', () => {
    fc.assert(
      fc.property(arbMesh, fc.nat(6), picks, (shape, at, stream) => {
        const mesh = made(shape);
        mesh.move(names[at] ?? '', commit(1, shape[at]?.imports));
        mesh.settleDown(picker(stream));
        expect(Object.fromEntries(mesh.taken)).toEqual({ [names[at] ?? '']: 1 });
      }),
    );
  }, 60_000);
});
