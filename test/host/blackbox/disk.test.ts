/** A full disk: what was there is whole, the resource has failed, and with room again it is put right. */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DeclaredResource } from '../../../src/schema/declaration';
import { builtHost, declarationOf, file, type Machine, machine } from './machine';

const host = builtHost();
let one: Machine;

beforeEach(() => {
  one = machine(host.entry);
});
afterEach(() => one.remove());
afterAll(() => host.remove());

/** Runs a script where `$SMALL` is a file system of 1 MiB, in namespaces of its own, so that no test needs to be root. */
async function onSmallDisk(script: string, small: string): Promise<string> {
  mkdirSync(small, { recursive: true });
  const whole = `set -u; mount -t tmpfs -o size=1m small "$SMALL"; ${script}`;
  return await new Promise((resolve, reject) => {
    execFile(
      'unshare',
      ['--user', '--map-root-user', '--mount', '--kill-child', 'sh', '-c', whole],
      {
        env: { PATH: process.env.PATH, HOME: one.dir, SMALL: small, NODE: process.execPath, HOST: host.entry, ROOT: one.root, STATE: one.state },
        timeout: 60_000,
      },
      (error, out, err) => (error === null ? resolve(out) : reject(new Error(`${error.message}\n${out}\n${err}`))),
    );
  });
}

function written(name: string, sequence: number, resources: readonly DeclaredResource[]): string {
  const path = join(one.dir, name);
  writeFileSync(path, JSON.stringify(declarationOf(resources, sequence)));
  return path;
}

const apply = (declaration: string): string =>
  `"$NODE" "$HOST" --root "$ROOT" --state "$STATE" --once --declaration ${declaration}; echo "status $?"; `;

const BIG = 'x'.repeat(2 << 20);

test('the root is full: the old content stays, the file is named, the other module goes on', async () => {
  const first = written('1.json', 1, [file('/etc/app', 'old'), file('/etc/web', 'w1', { module: 'web' })]);
  const second = written('2.json', 2, [file('/etc/app', BIG), file('/etc/web', 'w2', { module: 'web' })]);
  const third = written('3.json', 3, [file('/etc/app', 'new'), file('/etc/web', 'w2', { module: 'web' })]);
  const look = 'echo "app $(cat "$ROOT/etc/app" | head -c 20)"; echo "web $(cat "$ROOT/etc/web")"; echo "lies $(ls -A "$ROOT/etc" | tr "\\n" " ")"; ';
  const out = await onSmallDisk(apply(first) + look + apply(second) + look + apply(third) + look, one.root);
  expect(out).toMatch(/status 0\napp old\nweb w1\nlies app web \n/);
  expect(out).toMatch(/file\/etc\/app.*ENOSPC|file\/etc\/app.*(disk|space)/);
  expect(out).toMatch(/status 1\napp old\nweb w2\nlies app web \n/);
  expect(out).toMatch(/status 0\napp new\nweb w2\nlies app web \n$/);
});

test('the state directory is full: nothing is done that could not be journalled, and nothing is lost', async () => {
  const first = written('1.json', 1, [file('/etc/app', 'old')]);
  const second = written('2.json', 2, [file('/etc/app', 'new')]);
  const fill = 'dd if=/dev/zero of="$STATE/fill" bs=4k 2>/dev/null; ';
  const look = 'echo "app $(cat "$ROOT/etc/app")"; ';
  const out = await onSmallDisk(`${apply(first)}${fill}${apply(second)}${look}rm "$STATE/fill"; ${apply(second)}${look}`, one.state);
  expect(out).toMatch(/status 0\n/);
  expect(out).toMatch(/status [12]\napp old\n/);
  expect(out).toMatch(/status 0\napp new\n$/);
});

test('what was there first is kept whole or not adopted at all', async () => {
  one.put('etc/app', BIG);
  const first = written('1.json', 1, [file('/etc/app', 'new')]);
  const out = await onSmallDisk(apply(first), one.state);
  expect(out).toContain('status 1');
  expect(one.text('etc/app')).toBe(BIG);
});
