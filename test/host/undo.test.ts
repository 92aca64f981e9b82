import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DeclaredResource } from '../../src/schema/declaration';
import { eventually } from '../support/eventually';
import { action, file, type Machine, machine, processesWith } from './machine';

/** What an action made is taken away by its `undo` once nobody declares it, however often that takes. */

let m: Machine;

beforeEach(() => {
  m = machine();
});
afterEach(() => m.remove());

const failuresOf = ({ modules }: Awaited<ReturnType<Machine['apply']>>) => modules.flatMap(({ failures }) => failures);

/** A thing in a file outside the root, as a database is outside it: made, looked for, and dropped by commands that note what they do. */
function thing(name: string, { undo = true, module = 'm' } = {}): Extract<DeclaredResource, { shape: 'action' }> {
  const sh = (text: string): string[] => ['sh', '-c', text, name];
  const at = join(m.folder, name);
  const made = action(name, sh(`echo make ${name} >>${m.folder}/log; : >${at}`), sh(`[ -e ${at} ]`), { module });
  const dropping = `echo drop ${name} >>${m.folder}/log; [ -e ${m.folder}/stubborn ] && { echo it is in use; exit 4; }; rm -f ${at}`;
  return undo ? { ...made, spec: { ...made.spec, undo: sh(dropping) } } : made;
}

const log = (): string[] => (existsSync(join(m.folder, 'log')) ? readFileSync(join(m.folder, 'log'), 'utf8').trim().split('\n') : []);

test('it is undone once when it is no longer declared, last made first, and without `undo` never', async () => {
  await m.apply([thing('one'), thing('two'), thing('kept', { undo: false })]);
  m.restart();
  expect((await m.apply([thing('one')])).removed).toEqual(['action/two']);
  expect((await m.apply([])).removed).toEqual(['action/one']);
  await m.apply([]);
  expect(log()).toEqual(['make one', 'make two', 'make kept', 'drop two', 'drop one']);
  expect(existsSync(join(m.folder, 'kept'))).toBe(true);
});

test('what was so before this host ever ran it is not undone, and what it mended later is', async () => {
  writeFileSync(join(m.folder, 'one'), 'theirs');
  await m.apply([thing('one')]);
  expect(await m.apply([])).toMatchObject({ removed: [], hasFailed: false });
  expect(readFileSync(join(m.folder, 'one'), 'utf8')).toBe('theirs');
  await m.apply([thing('one')]);
  rmSync(join(m.folder, 'one'));
  await m.apply([thing('one')]);
  expect((await m.apply([])).removed).toEqual(['action/one']);
});

test('an `undo` that a later declaration brings counts for what ran before it', async () => {
  await m.apply([thing('one', { undo: false })]);
  await m.apply([thing('one')]);
  expect((await m.apply([])).removed).toEqual(['action/one']);
});

test('what it needs stays until it is undone: a failure is said and tried again, and holds up nothing else', async () => {
  const key = file('/etc/key', 'k', { mode: '0600' });
  const other = file('/etc/other', 'o', { module: 'n' });
  await m.apply([key, thing('one'), other]);
  writeFileSync(join(m.folder, 'stubborn'), '');
  const pass = await m.apply([file('/etc/still', 's')]);
  expect(pass).toMatchObject({ removed: ['file/etc/other'], hasFailed: true, left: [{ module: 'm', resource: 'action/one' }] });
  expect(failuresOf(pass)).toMatchObject([
    { resource: 'action/one', message: expect.stringMatching(/^cannot be taken away: .* ended with status 4: it is in use$/) },
  ]);
  expect(m.tree()).toMatchObject({ 'etc/key': '600 k', 'etc/still': '644 s' });
  m.restart();
  rmSync(join(m.folder, 'stubborn'));
  expect(await m.apply([file('/etc/still', 's')])).toMatchObject({ removed: ['action/one', 'file/etc/key'], hasFailed: false });
  expect(m.tree()['etc/key']).toBeUndefined();
});

test('two that are dropped at once do not hold up one another', async () => {
  await m.apply([thing('one'), { ...thing('bad'), spec: { ...thing('bad').spec, undo: ['false'] } }]);
  expect(await m.apply([])).toMatchObject({ removed: ['action/one'], left: [{ resource: 'action/bad' }] });
});

test('it ends within its time, and a newer declaration does not wait for it', async () => {
  const slow = { ...thing('one'), spec: { ...thing('one').spec, undo: ['sleep', '271829'], timeout: 2_000 } };
  await m.apply([slow]);
  expect((await m.apply([])).left[0]?.message).toContain('did not end within 2000 ms');
  await m.apply([{ ...slow, spec: { ...slow.spec, timeout: 60_000 } }]);
  const newer = new AbortController();
  const pass = m.apply([], newer.signal);
  await eventually(() => processesWith('sleep', '271829').length === 1);
  newer.abort();
  await expect(pass).rejects.toThrow();
  await eventually(() => processesWith('sleep', '271829').length === 0);
  expect((await m.apply([thing('one')])).hasFailed).toBe(false);
  expect((await m.apply([])).removed).toEqual(['action/one']);
});

test('killed while it makes or undoes, a host finishes it the next time', async () => {
  const waiting = { ...thing('one'), spec: { ...thing('one').spec, run: ['sh', '-c', `: >${m.folder}/one; sleep 161804`] } };
  const listed = join(m.folder, 'lists.json');
  const killedIn = async (lists: DeclaredResource[][], during: string): Promise<void> => {
    m.restart();
    writeFileSync(listed, JSON.stringify(lists));
    const args = ['-r', join(__dirname, '../support/typescript.cjs'), join(__dirname, 'loop.ts'), m.root, m.state, listed];
    const host = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [pid] = await eventually(() => {
      const found = processesWith('sleep', during);
      return found.length > 0 ? found : null;
    });
    host.kill('SIGKILL');
    await once(host, 'exit');
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  };
  await killedIn([[waiting], [waiting]], '161804');
  expect((await m.apply([])).removed).toEqual(['action/one']);
  expect(existsSync(join(m.folder, 'one'))).toBe(false);
  const undoing = {
    ...thing('two'),
    spec: { ...thing('two').spec, undo: ['sh', '-c', `[ -e ${m.folder}/quick ] || sleep 141422; rm -f ${m.folder}/two`] },
  };
  await m.apply([undoing]);
  await killedIn([[], []], '141422');
  writeFileSync(join(m.folder, 'quick'), '');
  expect((await m.apply([])).removed).toEqual(['action/two']);
  expect(existsSync(join(m.folder, 'two'))).toBe(false);
}, 30_000);

describe('parts of a module, each made for somebody else', () => {
  const part = <T extends DeclaredResource>(name: string, one: T): T => ({ ...one, part: name });
  const never = (name: string) => part(name, action(`make-${name}`, ['sh', '-c', 'echo no; exit 3'], ['false']));

  test('one that fails skips the rest of itself and nothing of another; what they stand on skips them all', async () => {
    const resources = [
      file('/own', 'o'),
      never('a'),
      part('a', file('/a/after', 'a')),
      part('b', file('/b/before', 'b')),
      part('b', thing('b')),
      part('b', file('/b/after', 'b')),
    ];
    const pass = await m.apply(resources);
    expect(m.tree()).toEqual(expect.objectContaining({ own: '644 o', 'b/before': '644 b', 'b/after': '644 b' }));
    expect(m.tree()).not.toHaveProperty('a/after');
    expect(pass).toMatchObject({ hasFailed: true, modules: [{ state: 'failed', failedParts: ['a'], failures: [{ resource: 'action/make-a' }] }] });
    expect((await m.apply(resources.filter((one) => one.part !== 'a'))).modules[0]).toEqual({
      module: 'm',
      state: 'held',
      failures: [],
      changes: [],
    });
    const { part: _, ...own } = never('a');
    const all = await m.apply([own, part('c', file('/c', 'c'))]);
    expect(all.modules[0]).not.toHaveProperty('failedParts');
    expect(m.tree()).not.toHaveProperty('c');
  });

  test('what cannot be taken away of one leaves the others held', async () => {
    await m.apply([part('a', thing('a')), part('b', thing('b'))]);
    writeFileSync(join(m.folder, 'stubborn'), '');
    const pass = await m.apply([part('b', thing('b')), part('c', thing('c'))]);
    expect(pass.modules[0]).toMatchObject({ state: 'failed', failedParts: [], failures: [{ resource: 'action/a' }] });
    expect(existsSync(join(m.folder, 'c'))).toBe(true);
  });
});

test('of the last words of a command, the last that say something are told', async () => {
  const pass = await m.apply([action('a', ['sh', '-c', 'printf "no such table\n   ^\n"; exit 1'], ['false'])]);
  expect(failuresOf(pass)).toMatchObject([{ message: expect.stringMatching(/ended with status 1: no such table$/) }]);
});
