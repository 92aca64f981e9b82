/** Invariants 6 and 10 of the host: killed at any moment, it has left no half-written file and removed nothing that was not its own. */
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { DeclaredResource } from '../../../src/schema/declaration';
import { builtHost, directory, file, type Machine, machine } from './machine';

const host = builtHost();
let one: Machine;

beforeEach(() => {
  one = machine(host.entry);
});
afterEach(() => one.remove());
afterAll(() => host.remove());

const SEED = Number(process.env.TALLY_TEST_SEED ?? 20261129);
const ROUNDS = 14;
const FILES = 60;

/** The same seed, the same moments. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Long enough that a write takes several chunks, with an end that a half of it lacks. */
function content(path: string, version: number): string {
  return `${path} ${version} ${'·'.repeat(2_000 + version * 100)} end ${version}`;
}

/** Of each version other files, some of them adopted, some in directories of their own. */
function version(number: number): DeclaredResource[] {
  const resources: DeclaredResource[] = [directory(`/opt/v${number}`)];
  for (let i = 0; i < FILES; i += 1) {
    if ((i + number) % 4 === 0) continue;
    const path = [`/etc/f${i}`, `/opt/v${number}/f${i}`, `/srv/${i}/f`][i % 3] ?? '';
    resources.push(file(path, content(path, number), { mode: number % 2 === 0 ? '0644' : '0600', module: i % 2 === 0 ? 'app' : 'web' }));
  }
  return resources;
}

function furnish(): void {
  for (let i = 0; i < FILES; i += 6) one.put(`etc/f${i}`, `f${i} as it was`, 0o640);
  one.put('etc/foreign', 'nobody declares this');
  one.put('srv/2/foreign', 'nor this');
}

/** Each file is whole: as it was before all, or as some version says. */
function checkWhole(versions: number): void {
  const tree = one.tree();
  expect(tree).toMatchObject({ 'etc/foreign': '644 nobody declares this', 'srv/2/foreign': '644 nor this' });
  for (const [path, found] of Object.entries(tree)) {
    if (found.endsWith(' directory') || path.endsWith('foreign') || path.includes('/.tally-')) continue;
    const text = found.slice(found.indexOf(' ') + 1);
    const known = [...Array.from({ length: versions + 1 }, (_, number) => content(`/${path}`, number)), `${path.split('/').at(-1) ?? ''} as it was`];
    if (!known.includes(text)) throw new Error(`${path} is half written: ${text.length} characters, ${JSON.stringify(text.slice(0, 60))}`);
  }
}

async function killedAfter(resources: readonly DeclaredResource[], ms: number): Promise<boolean> {
  const child = one.start('--once', '--declaration', one.declarationFile(resources));
  const ended = once(child, 'exit');
  await Promise.race([ended, pause(ms)]);
  const isKilled = child.exitCode === null;
  child.kill('SIGKILL');
  await ended;
  return isKilled;
}

test(`killed at ${ROUNDS} random moments (seed ${SEED}), it goes on where it was`, async () => {
  const next = random(SEED);
  furnish();
  const before = one.tree();
  // How long a start takes that changes nothing, and one that changes all: the moments lie between the two, mostly.
  const started = performance.now();
  await one.once([]);
  const bootMs = performance.now() - started;
  expect(await one.once(version(0))).toMatchObject({ status: 0, err: '' });
  const wholeMs = performance.now() - started - bootMs;
  let killed = 0;
  for (let round = 1; round <= ROUNDS; round += 1) {
    const ms = bootMs * 0.6 + next() * (wholeMs - bootMs * 0.5);
    if (await killedAfter(version(round), ms)) killed += 1;
    checkWhole(round);
    if (round % 3 === 0) {
      // The one that was journalled when it was killed, without being told again.
      await one.host('--once');
      checkWhole(round);
    }
  }
  expect(killed).toBeGreaterThan(ROUNDS / 3);
  expect(await one.once(version(ROUNDS + 1))).toMatchObject({ status: 0, err: '' });
  for (const { shape, spec } of version(ROUNDS + 1)) if (shape === 'file') expect(one.text(spec.path)).toBe(spec.content);
  expect(await one.once([])).toMatchObject({ status: 0 });
  expect(one.tree()).toEqual(before);
}, 180_000);

test('a kill while things are taken away leaves nothing of ours and all of theirs', async () => {
  const next = random(SEED + 1);
  furnish();
  const before = one.tree();
  for (let round = 0; round < 4; round += 1) {
    expect(await one.once(version(round))).toMatchObject({ status: 0 });
    await killedAfter([], 60 + next() * 300);
    checkWhole(round);
    expect(await one.once([])).toMatchObject({ status: 0 });
    expect(one.tree()).toEqual(before);
  }
  // Nothing of what was put back or unpacked is kept for nobody.
  const left = existsSync(one.state)
    ? readdirSync(one.state, { recursive: true, encoding: 'utf8' }).filter((path) => readsAs(join(one.state, path), 'as it was'))
    : [];
  expect(left).toEqual([]);
}, 120_000);

function readsAs(path: string, text: string): boolean {
  try {
    return !path.endsWith('.jsonl') && readFileSync(path, 'utf8').includes(text);
  } catch {
    return false;
  }
}
