import { createSourceReader, type SourceReader } from '../../src/control';
import { addModule } from '../../src/inventory/modules';
import { LEASE_MS, type Reading } from '../../src/inventory/sources';
import { type ControlWorld, controlWorld } from '../support/control';
import { eventually } from '../support/eventually';

let world: ControlWorld;
let reader: SourceReader;
let wakes = 0;

beforeEach(async () => {
  world = await controlWorld();
  wakes = 0;
  reader = createSourceReader(world.deps, () => {
    wakes += 1;
  });
  world.atEnd(() => reader.stop());
});

afterEach(() => world.close());

const commitOf = (letter: string): string => letter.repeat(40);
const head = (letter: string) => async (): Promise<Reading> => ({ kind: 'head', commit: commitOf(letter) });

async function track(module: string, repository: string): Promise<void> {
  await addModule(world.db, { name: module, repository, ref: 'main' });
  // Due by the clock of these tests, which counts in milliseconds and not as finely as the store's.
  await world.db.query('update module set next_read_at = $2 where name = $1', [module, world.deps.now()]);
}

async function headOf(module: string): Promise<string | null> {
  return (await world.row<{ head: string | null }>('select head_commit as head from module where name = $1', [module])).head;
}

/** One that leases anew many times a second. */
function eagerReader(): SourceReader {
  const eager = createSourceReader(world.deps, () => undefined, 50);
  world.atEnd(() => eager.stop());
  return eager;
}

/** The lease of a source that is being asked runs a good while from now. */
async function leasedAnew(module: string): Promise<void> {
  const soon = new Date(world.deps.now().getTime() + LEASE_MS / 2);
  await eventually(async () => (await world.count('module where name = $1 and next_read_at > $2', [module, soon])) === 1);
}

describe('reading sources', () => {
  it('asks a repository once for all its modules, and again only when it is due', async () => {
    world.git.set('https://git.example/mono.git', head('a'));
    for (const module of ['one', 'two', 'three']) await track(module, 'https://git.example/mono.git');
    expect(await reader.readDue()).toBe(3);
    expect(await reader.readDue()).toBe(0);
    expect(world.gitAsked).toEqual(['https://git.example/mono.git']);
    expect(await headOf('three')).toBe(commitOf('a'));
    expect(wakes).toBe(1);
    world.git.set('https://git.example/mono.git', head('b'));
    world.advance(70_000);
    expect(await reader.readDue()).toBe(3);
    expect(await headOf('one')).toBe(commitOf('b'));
  });

  it('asks a host a few things at a time, and many hosts at once', async () => {
    const busy = new Map<string, number>();
    let mostOfOne = 0;
    let mostOfAll = 0;
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    for (let i = 0; i < 40; i += 1) {
      const host = `git-${i % 5}.example`;
      const repository = `https://${host}/${i}.git`;
      await track(`module-${i}`, repository);
      world.git.set(repository, async () => {
        busy.set(host, (busy.get(host) ?? 0) + 1);
        mostOfOne = Math.max(mostOfOne, busy.get(host) ?? 0);
        mostOfAll = Math.max(
          mostOfAll,
          [...busy.values()].reduce((sum, n) => sum + n, 0),
        );
        await gate;
        busy.set(host, (busy.get(host) ?? 0) - 1);
        return { kind: 'head', commit: commitOf('a') };
      });
    }
    world.advance(1_000);
    const reading = reader.readDue();
    await eventually(() => mostOfAll === 16);
    release();
    expect(await reading).toBe(40);
    expect(mostOfAll).toBe(16);
    expect(mostOfOne).toBe(4);
  });

  it('lets repositories that hang delay no other', async () => {
    let release = (): void => undefined;
    const hanging = new Promise<Reading>((resolve) => {
      release = () => resolve({ kind: 'unreadable', reason: 'no answer within 20 s' });
    });
    for (let i = 0; i < 20; i += 1) {
      await track(`hangs-${i}`, `https://dead-${i}.example/x.git`);
      world.git.set(`https://dead-${i}.example/x.git`, () => hanging);
    }
    await track('healthy', 'https://git.example/healthy.git');
    world.git.set('https://git.example/healthy.git', head('a'));
    world.advance(1_000);
    // The pass ends without them, and what is due next is read while they still hang.
    const eager = eagerReader();
    await eager.readDue();
    await eventually(async () => (await headOf('healthy')) === commitOf('a'));
    world.git.set('https://git.example/healthy.git', head('b'));
    for (let i = 0; i < 7; i += 1) {
      world.advance(10_000);
      await leasedAnew('hangs-19');
    }
    expect(await eager.readDue()).toBe(1);
    expect(await headOf('healthy')).toBe(commitOf('b'));
    release();
    await eventually(async () => (await world.count('module where trouble_kind = $1', ['unreadable'])) === 20);
  });

  it('asks again soon where whoever asked has died meanwhile', async () => {
    const repository = 'https://slow.example/m.git';
    await track('m', repository);
    world.git.set(repository, () => new Promise(() => undefined));
    const died = eagerReader();
    void died.readDue();
    await eventually(() => world.gitAsked.length === 1);
    world.advance(LEASE_MS - 1_000);
    await leasedAnew('m');
    await died.stop();
    world.git.set(repository, head('a'));
    expect(await reader.readDue()).toBe(0);
    world.advance(LEASE_MS);
    expect(await reader.readDue()).toBe(1);
    expect(await headOf('m')).toBe(commitOf('a'));
  });

  it('lets a question that hangs not put off what an event made due again', async () => {
    for (const module of ['late', 'other']) {
      await track(module, `https://${module}.example/m.git`);
      world.git.set(`https://${module}.example/m.git`, () => new Promise(() => undefined));
    }
    const eager = eagerReader();
    void eager.readDue();
    await eventually(() => world.gitAsked.length === 2);
    world.advance(LEASE_MS - 1_000);
    // Another question was answered meanwhile, and is to be asked again in two seconds.
    const soon = new Date(world.deps.now().getTime() + 2_000);
    await world.db.query(`update module set read_at = $1, next_read_at = $2 where name = 'late'`, [world.deps.now(), soon]);
    await leasedAnew('other');
    expect(await world.row(`select next_read_at from module where name = 'late'`)).toEqual({ next_read_at: soon });
  });

  it('lets no late answer replace that to a later question, nor count for another repository of the same name', async () => {
    const repository = 'https://slow.example/m.git';
    await track('m', repository);
    let answerOld = (): void => undefined;
    const old = new Promise<void>((resolve) => {
      answerOld = resolve;
    });
    world.git.set(repository, async () => {
      await old;
      return { kind: 'head', commit: commitOf('a') };
    });
    const first = reader.readDue();
    await eventually(() => world.gitAsked.length === 1);
    world.git.set(repository, head('b'));
    world.advance(130_000);
    await reader.readDue();
    expect(await headOf('m')).toBe(commitOf('b'));
    answerOld();
    await first;
    expect(await headOf('m')).toBe(commitOf('b'));

    const other = 'https://other.example/m.git';
    let answerOther = (): void => undefined;
    const late = new Promise<void>((resolve) => {
      answerOther = resolve;
    });
    await track('n', other);
    world.git.set(other, async () => {
      await late;
      return { kind: 'head', commit: commitOf('c') };
    });
    const second = reader.readDue();
    await eventually(() => world.gitAsked.includes(other));
    await world.db.query(`delete from module where name = 'n'`);
    await track('n', 'https://new.example/n.git');
    answerOther();
    await second;
    expect(await headOf('n')).toBeNull();
  });

  it('says that a source cannot be read, since when, and keeps its head', async () => {
    world.git.set('https://git.example/a.git', head('a'));
    await track('a', 'https://git.example/a.git');
    await reader.readDue();
    world.git.set('https://git.example/a.git', async () => ({ kind: 'unreadable', reason: 'connection refused' }));
    world.advance(70_000);
    await reader.readDue();
    expect(await world.row('select head_commit, trouble_kind, trouble_reason from module')).toEqual({
      head_commit: commitOf('a'),
      trouble_kind: 'unreadable',
      trouble_reason: 'connection refused',
    });
  });
});

describe('an event', () => {
  it('has git read at once, and again while it gives the old commit', async () => {
    const repository = 'https://git.example/late.git';
    world.git.set(repository, head('a'));
    await track('late', repository);
    await reader.readDue();
    await reader.expect(['late']);
    await eventually(() => world.gitAsked.length === 2);
    world.git.set(repository, head('b'));
    await eventually(async () => (await headOf('late')) === commitOf('b'), { timeoutMs: 8_000 });
    expect(world.gitAsked.length).toBeLessThan(6);
    // It has moved: nobody reads it any more before it is due.
    expect(await reader.readDue()).toBe(0);
  });

  it('of a module that nobody tracks does nothing', async () => {
    await reader.expect(['nobody']);
    expect(world.gitAsked).toEqual([]);
  });
});
