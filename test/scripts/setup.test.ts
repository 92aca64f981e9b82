import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Does to the project what npm would, and writes down what it was asked. */
const FAKE_NPM = `#!/bin/sh
echo "$1 $2" >> asked
case $1 in
  ci) mkdir -p node_modules && cp package-lock.json node_modules/.package-lock.json ;;
  run) [ ! -e broken ] || { echo "src/a.ts(1,1): error"; exit 2; } ;;
esac
`;

let project: string;

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'tally-setup-'));
  for (const folder of ['scripts', 'src', 'bin']) mkdirSync(join(project, folder));
  cpSync(join(__dirname, '..', '..', 'scripts', 'setup.mjs'), join(project, 'scripts', 'setup.mjs'));
  writeFileSync(join(project, 'bin', 'npm'), FAKE_NPM, { mode: 0o755 });
  writeFileSync(join(project, 'src', 'a.ts'), '');
  writePackage('>=20.19.0');
  writeLock({ 'node_modules/a': { version: '1.0.0' }, 'node_modules/only-on-a-mac': { version: '1.0.0', optional: true } });
});

afterEach(() => rmSync(project, { recursive: true }));

describe('set-up before npm start and npm test', () => {
  test('installs and builds in a fresh clone, and nothing the second time', () => {
    expect(setUp()).toMatchObject({ status: 0, asked: ['ci --include=dev', 'run --silent'] });
    const again = setUp();
    expect(again).toMatchObject({ status: 0, asked: [] });
    expect(again.said).toMatch(/^✓ packages {3}up to date, skipped {2}\d\.\d s\n✓ build {6}up to date, skipped {2}\d\.\d s\n$/);
  });

  test('builds again when a source is newer than the build', () => {
    setUp();
    touch('src/a.ts');
    expect(setUp().asked).toEqual(['run --silent']);
  });

  test('builds again when a source was deleted', () => {
    setUp();
    rmSync(join(project, 'src', 'a.ts'));
    touch('src');
    expect(setUp().asked).toEqual(['run --silent']);
  });

  test.each<[string, Record<string, object>]>([
    ['another version', { 'node_modules/a': { version: '2.0.0' } }],
    ['one more', { 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { version: '1.0.0' } }],
    ['one less', {}],
  ])('installs again when the lock file names %s', (_, packages) => {
    setUp();
    writeLock(packages);
    expect(setUp().asked).toContain('ci --include=dev');
  });

  test('does not install again for a package that is for other machines', () => {
    setUp();
    const installed = { packages: { 'node_modules/a': { version: '1.0.0' } } };
    writeFileSync(join(project, 'node_modules', '.package-lock.json'), JSON.stringify(installed));
    expect(setUp().asked).toEqual([]);
  });

  test('shows what a failed build said, ends with one line, and tries again the next time', () => {
    writeFileSync(join(project, 'broken'), '');
    const { status, said } = setUp();
    expect(status).toBe(1);
    expect(said).toMatch(/src\/a\.ts\(1,1\): error\n"npm run --silent build" failed: [^\n]+\n$/);
    rmSync(join(project, 'broken'));
    expect(setUp()).toMatchObject({ status: 0, asked: ['run --silent'] });
  });

  test('says in one line that Node is too old', () => {
    writePackage('>=99.1.0');
    const { status, said, asked } = setUp();
    expect({ status, asked }).toEqual({ status: 1, asked: [] });
    expect(said).toMatch(/^tally needs Node 99\.1\.0 or newer, this is [\d.]+: [^\n]+\n$/);
  });
});

function setUp(): { status: number | null; said: string; asked: string[] } {
  const { status, stderr } = spawnSync(process.execPath, [join(project, 'scripts', 'setup.mjs')], {
    env: { PATH: `${join(project, 'bin')}:${process.env.PATH}` },
    encoding: 'utf8',
    timeout: 20_000,
  });
  const asked = readFileSync(join(project, 'asked'), { encoding: 'utf8', flag: 'a+' }).split('\n').filter(Boolean);
  rmSync(join(project, 'asked'));
  return { status, said: stderr, asked };
}

function writePackage(node: string): void {
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'tally', engines: { node } }));
}

function writeLock(packages: Record<string, object>): void {
  writeFileSync(join(project, 'package-lock.json'), JSON.stringify({ packages: { '': {}, ...packages } }));
}

/** Later than anything that was just written, whatever the file system's clock resolves. */
function touch(path: string): void {
  const later = new Date(Date.now() + 2_000);
  utimesSync(join(project, path), later, later);
}
