/** Whatever was declared before: at the end the machine holds what the last declaration says, and what was there before all. */
import { lstatSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { DeclaredResource } from '../../../src/schema/declaration';
import { builtHost, directory, file, type Machine, machine } from './machine';

const host = builtHost();
const machines: Machine[] = [];
const fresh = (): Machine => {
  const one = machine(host.entry);
  machines.push(one);
  return one;
};

afterEach(async () => {
  for (const one of machines.splice(0)) await one.remove();
});
afterAll(() => host.remove());

/** Owned by nobody but the machine: files, one of them with a mode of its own, a link, and directories. */
function furnish({ put, root }: Machine): void {
  put('etc/a', 'a as it was', 0o640);
  put('etc/kept', 'nobody declares this');
  put('opt/d/e', 'e as it was', 0o755);
  put('home/f', 'f');
  symlinkSync('kept', join(root, 'etc/b'));
}

const paths = ['/etc/a', '/etc/b', '/etc/new/c', '/opt/d/e', '/opt/d/g', '/srv/x/y/z', '/top'];
const directories = ['/opt/d', '/opt/h', '/srv/x', '/srv/x/w'];
const modes = ['0644', '0600', '0755'];

const resource = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .record({
        path: fc.constantFrom(...paths),
        content: fc.string({ maxLength: 20 }),
        mode: fc.constantFrom(...modes),
        module: fc.constantFrom('app', 'web'),
      })
      .map(({ path, content, mode, module }) => file(path, content, { mode, module })),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ path: fc.constantFrom(...directories), mode: fc.constantFrom('0755', '0700'), module: fc.constantFrom('app', 'web') })
      .map(({ path, mode, module }) => directory(path, { mode, module })),
  },
);
const declared = fc.uniqueArray(resource, { selector: (one) => one.id, maxLength: 7 }).map(inOrder);

/** A directory is declared before what lies in it, as a module's author writes it. */
function inOrder(resources: readonly DeclaredResource[]): DeclaredResource[] {
  const key = ({ shape, id }: DeclaredResource): string => `${shape === 'directory' ? 0 : 1}${id}`;
  return [...resources].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

test('random declarations, one after the other', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(declared, { minLength: 1, maxLength: 4 }), async (sequence) => {
      const one = fresh();
      furnish(one);
      const before = one.tree();
      for (const resources of sequence) {
        const ran = await one.once(resources);
        expect(ran).toMatchObject({ status: 0, err: '' });
        expect(one.tree()).toEqual(expected(before, resources));
      }
      expect(await one.once([])).toMatchObject({ status: 0 });
      expect(one.tree()).toEqual(before);
      await one.remove();
    }),
    { numRuns: 12, endOnFailure: true },
  );
}, 240_000);

/** What was there, with what is declared laid over it, and the directories on the way. */
function expected(before: Record<string, string>, resources: readonly DeclaredResource[]): Record<string, string> {
  const tree = { ...before };
  for (const { shape, spec } of resources) {
    if (shape !== 'file' && shape !== 'directory') continue;
    const parts = spec.path.slice(1).split('/');
    for (let depth = 1; depth < parts.length; depth += 1) tree[parts.slice(0, depth).join('/')] ??= '755 directory';
    const mode = spec.mode.replace(/^0/, '');
    tree[parts.join('/')] = shape === 'file' ? `${mode} ${spec.content ?? ''}` : `${mode} directory`;
  }
  return tree;
}

test('a file that was there is adopted with its mode, and put back as it was', async () => {
  const one = fresh();
  one.put('etc/motd', 'written by hand', 0o600);
  await one.once([file('/etc/motd', 'first')]);
  await one.once([file('/etc/motd', 'second')]);
  expect(one.tree()).toMatchObject({ 'etc/motd': '644 second' });
  await one.once([]);
  expect(one.tree()).toEqual({ etc: '755 directory', 'etc/motd': '600 written by hand' });
});

test('what another module names next stays, and is not made anew', async () => {
  const one = fresh();
  await one.once([file('/etc/x', 'same', { module: 'app' })]);
  const { ino } = lstatSync(join(one.root, 'etc/x'));
  await one.once([file('/etc/x', 'same', { module: 'web' })]);
  expect(lstatSync(join(one.root, 'etc/x')).ino).toBe(ino);
});

test('what somebody put into a directory of ours keeps the directory', async () => {
  const one = fresh();
  await one.once([directory('/srv/data'), file('/srv/data/ours', 'ours')]);
  one.put('srv/data/theirs', 'theirs');
  await one.once([]);
  expect(one.tree()).toEqual({ srv: '755 directory', 'srv/data': '755 directory', 'srv/data/theirs': '644 theirs' });
});

test('drift is put right, and a failing resource skips the rest of its module and nothing else', async () => {
  const one = fresh();
  one.put('etc/blocked/inside', 'a directory stands where a file should');
  const resources = [file('/etc/one', '1'), file('/etc/blocked', 'x'), file('/etc/after', '2'), file('/etc/other', '3', { module: 'web' })];
  const ran = await one.once(resources);
  expect(ran.status).toBe(1);
  expect(`${ran.out}${ran.err}`).toContain('file/etc/blocked');
  const tree = one.tree();
  expect(tree).toMatchObject({ 'etc/one': '644 1', 'etc/other': '644 3' });
  expect(tree).not.toHaveProperty('etc/after');
  one.put('etc/other', 'drifted');
  expect((await one.host('--once')).status).toBe(1);
  expect(one.text('etc/other')).toBe('3');
});

test('what was there just as declared is not ours: it stays when it is no longer declared', async () => {
  const one = fresh();
  one.put('etc/same', 'same', 0o644);
  one.put('srv/data/x', 'x');
  await one.once([directory('/srv/data'), file('/etc/same', 'same')]);
  await one.once([directory('/srv/data'), file('/etc/same', 'other')]);
  await one.once([]);
  expect(one.tree()).toEqual({
    etc: '755 directory',
    'etc/same': '644 same',
    srv: '755 directory',
    'srv/data': '755 directory',
    'srv/data/x': '644 x',
  });
});
