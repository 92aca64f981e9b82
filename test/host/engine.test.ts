import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openHost } from '../../src/host/context';
import { action, archive, directory, file, type Machine, machine } from './machine';

let m: Machine;

beforeEach(() => {
  m = machine();
});
afterEach(() => m.remove());

const changesOf = ({ modules }: Awaited<ReturnType<Machine['apply']>>) => modules.flatMap(({ changes }) => changes);
const failuresOf = ({ modules }: Awaited<ReturnType<Machine['apply']>>) => modules.flatMap(({ failures }) => failures);

describe('a declaration is applied', () => {
  test('in order, read back, and then holds without another change', async () => {
    const resources = [directory('/var/data', { mode: '0750' }), file('/etc/app/conf', 'root=${root} literal=$${root}\n', { mode: '0600' })];
    expect(changesOf(await m.apply(resources))).toEqual([
      { resource: 'directory/var/data', cause: 'intentional' },
      { resource: 'file/etc/app/conf', cause: 'intentional' },
    ]);
    expect(m.tree()).toMatchObject({ 'var/data': '750', 'etc/app/conf': `600 root=${m.root} literal=\${root}\n` });
    expect(await m.apply(resources)).toMatchObject({ hasChanged: false, hasFailed: false });
  });

  test('and what drifted is mended and called corrective, what is declared anew intentional', async () => {
    const one = [file('/a', 'first'), directory('/d'), file('/d/b', 'b')];
    await m.apply(one);
    m.plant('a', 'meddled');
    rmSync(join(m.root, 'd/b'));
    expect(changesOf(await m.apply(one))).toEqual([
      { resource: 'file/a', cause: 'corrective' },
      { resource: 'file/d/b', cause: 'corrective' },
    ]);
    expect(changesOf(await m.apply([file('/a', 'second'), ...one.slice(1)]))).toEqual([{ resource: 'file/a', cause: 'intentional' }]);
  });

  test('a content that was changed without a trace in size or time is found by its inode change time', async () => {
    const one = [file('/a', 'first')];
    await m.apply(one);
    const before = statSync(join(m.root, 'a'));
    await m.apply(one);
    writeFileSync(join(m.root, 'a'), 'other');
    execFileSync('touch', ['-d', before.mtime.toISOString(), join(m.root, 'a')]);
    expect(changesOf(await m.apply(one))).toEqual([{ resource: 'file/a', cause: 'corrective' }]);
    expect(m.read('a')).toBe('first');
  });

  test('a failing resource is reported, the later ones of its module are skipped, other modules go on', async () => {
    m.plant('blocked', 'a file where a directory must be');
    const pass = await m.apply([file('/one', '1'), file('/blocked/x', 'x'), file('/after', 'never'), file('/other', 'other', { module: 'n' })]);
    expect(pass.hasFailed).toBe(true);
    expect(pass.modules).toMatchObject([
      { module: 'm', state: 'failed', failures: [{ resource: 'file/blocked/x' }], changes: [{ resource: 'file/one' }] },
      { module: 'n', state: 'held', failures: [] },
    ]);
    expect(existsSync(join(m.root, 'after'))).toBe(false);
    expect(m.read('other')).toBe('other');
  });

  test('an action runs while its condition does not hold, and must make it hold', async () => {
    const done = join(m.root, 'done');
    const once = action('init', ['sh', '-c', 'echo run >>${root}/done'], ['test', '-e', '${root}/done']);
    expect(changesOf(await m.apply([once]))).toEqual([{ resource: 'action/init', cause: 'intentional' }]);
    expect((await m.apply([once])).hasChanged).toBe(false);
    rmSync(done);
    expect(changesOf(await m.apply([once]))).toEqual([{ resource: 'action/init', cause: 'corrective' }]);
    const useless = await m.apply([action('init', ['true'], ['sh', '-c', 'echo not yet; exit 3'])]);
    expect(failuresOf(useless)).toEqual([
      { resource: 'action/init', message: expect.stringMatching(/does not hold: sh -c .* ended with status 3: not yet/) },
    ]);
    const late = await m.apply([action('slow', ['sleep', '60'], ['false'], { timeout: 200 })]);
    expect(failuresOf(late)[0]?.message).toContain('did not end within 200 ms');
  });
});

describe('what is no longer declared', () => {
  test('is removed in reverse, directories of the host only when empty, and nothing of others', async () => {
    m.plant('etc/theirs', 'theirs');
    const before = m.tree();
    await m.apply([
      directory('/var/data', { mode: '0700' }),
      file('/var/data/x', 'x'),
      file('/etc/app/deep/conf', 'c'),
      directory('/srv/full'),
      directory('/srv/mine'),
    ]);
    m.plant('srv/full/theirs', 'theirs too');
    const pass = await m.apply([]);
    expect(pass.removed).toEqual(['directory/srv/mine', 'directory/srv/full', 'file/etc/app/deep/conf', 'file/var/data/x', 'directory/var/data']);
    expect(m.tree()).toEqual({ ...before, srv: '755', 'srv/full': '755', 'srv/full/theirs': '644 theirs too' });
    rmSync(join(m.root, 'srv/full/theirs'));
    await m.apply([file('/x', 'x')]);
    await m.apply([]);
    expect(m.tree()).toEqual(before);
  });

  test('a file that was there before is kept from its first content on, and put back as it was', async () => {
    m.plant('etc/motd', 'theirs', 0o640);
    m.plant('etc/same', 'the same');
    symlinkSync('motd', join(m.root, 'etc/link'));
    m.plant('opt/site/index.html', 'their site');
    m.plant('opt/plain', 'no directory');
    mkdirSync(join(m.root, 'var'), { mode: 0o711 });
    const before = m.tree();
    const { archive: pack } = m;
    const site = await pack({ 'index.html': 'v1' });
    const declared = (content: string) => [
      file('/etc/motd', content),
      file('/etc/same', 'the same'),
      file('/etc/link', content),
      archive('/opt/site', site),
      archive('/opt/plain', site),
      directory('/var', { mode: '0700' }),
    ];
    expect(failuresOf(await m.apply(declared('v1')))).toEqual([]);
    expect(failuresOf(await m.apply(declared('v2')))).toEqual([]);
    expect(m.tree()).toMatchObject({ 'etc/motd': '644 v2', 'etc/link': '644 v2', var: '700' });
    expect(m.read('opt/site/index.html')).toBe('v1');
    m.restart();
    await m.apply([]);
    expect(m.tree()).toEqual(before);
    expect(readdirSync(join(m.state, 'kept'))).toEqual([]);
    expect(readdirSync(join(m.state, 'trees'))).toEqual([]);
  });

  test('one target passes from one module and shape to another', async () => {
    await m.apply([file('/a/b', 'file')]);
    const inode = lstatSync(join(m.root, 'a/b')).ino;
    expect((await m.apply([file('/a/b', 'file', { module: 'n' })])).removed).toEqual([]);
    expect(lstatSync(join(m.root, 'a/b')).ino).toBe(inode);
    expect((await m.apply([directory('/a/b', { module: 'n' })])).hasFailed).toBe(false);
    expect(m.tree()).toMatchObject({ 'a/b': '755' });
    await m.apply([]);
    expect(m.tree()).toEqual({});
  });
});

describe('the root', () => {
  test('is left by no link: what leads out fails, what leads elsewhere inside does not', async () => {
    const outside = join(m.folder, 'outside');
    mkdirSync(outside);
    mkdirSync(join(m.root, 'inside'));
    symlinkSync(outside, join(m.root, 'out'));
    symlinkSync('inside', join(m.root, 'in'));
    symlinkSync('nowhere', join(m.root, 'dangling'));
    const pass = await m.apply([file('/in/x', 'x'), file('/out/x', 'x', { module: 'n' }), file('/dangling/x', 'x', { module: 'o' })]);
    expect(pass.modules.map(({ state }) => state)).toEqual(['held', 'failed', 'failed']);
    expect(failuresOf(pass)[0]?.message).toContain(`leads out of ${m.root}`);
    expect(m.read('inside/x')).toBe('x');
    expect(readdirSync(outside)).toEqual([]);
  });
});

test('a state directory has one host at a time', async () => {
  await m.host();
  await expect(openHost({ root: m.root, state: m.state, settleMs: 0, registry: null })).rejects.toThrow('another host has the state directory');
});
