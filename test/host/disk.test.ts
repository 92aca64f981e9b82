import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { DeclaredResource } from '../../src/schema/declaration';
import { declarationOf, file, type Machine, machine } from './machine';

/** Full disks are small ones, mounted where nobody else sees them: that takes no rights. */

const run = promisify(execFile);
const HOST = `${process.execPath} -r ${join(__dirname, '../support/typescript.cjs')} ${join(__dirname, '../../workers/host.ts')}`;

let m: Machine;

beforeEach(() => {
  m = machine();
  mkdirSync(m.state);
});
afterEach(() => m.remove());

/** `apply N` applies the Nth list; what is printed tells of each step. */
async function inside(lists: ReadonlyArray<readonly DeclaredResource[]>, script: string): Promise<string[]> {
  lists.forEach((resources, at) => {
    writeFileSync(join(m.folder, `${at}.json`), JSON.stringify(declarationOf(resources, at + 1)));
  });
  const apply = `apply() { ${HOST} --root ${m.root} --state ${m.state} --once --unsigned --declaration ${m.folder}/$1.json; echo "status $?"; }`;
  const { stdout } = await run('unshare', ['--map-root-user', '--mount', 'sh', '-c', `set -u; ${apply}\n${script}`], { timeout: 60_000 });
  return stdout.trim().split('\n');
}

test('a full disk leaves the old content whole and fails the resource; what fits is held again', async () => {
  const lists = [[file('/data', 'old content')], [file('/data', 'x'.repeat(2 << 20)), file('/more', 'never')], [file('/data', 'new content')]];
  const said = await inside(
    lists,
    `mount -t tmpfs -o size=1m tmpfs ${m.root}
    apply 0; apply 1; ls -A ${m.root}; cat ${m.root}/data; echo; apply 2; cat ${m.root}/data`,
  );
  expect(said).toEqual([
    'm: file/data changed, intentional',
    'status 0',
    expect.stringMatching(/^m: file\/data failed: .*ENOSPC/),
    'status 1',
    'data',
    'old content',
    'm: file/data changed, intentional',
    'status 0',
    'new content',
  ]);
});

test('what could not be journalled is not done, and a journal that found no room loses nothing', async () => {
  const many = Array.from({ length: 200 }, (_, at) => file(`/f${at}`, 'x'.repeat(100), { module: `m${at}` }));
  const said = await inside(
    [[file('/a', '1')], [file('/a', '1'), ...many], [file('/a', '1'), ...many], []],
    `mount -t tmpfs -o size=512k tmpfs ${m.state}
    apply 0; head -c 1000000 /dev/zero >${m.state}/filler 2>/dev/null
    # Room for the declaration and not for all that it takes.
    truncate -s -120000 ${m.state}/filler
    apply 1 2>&1 | tail -2; rm ${m.state}/filler
    apply 2 | tail -1; ls ${m.root} | wc -l
    apply 3 | tail -1; ls -A ${m.root} | wc -l`,
  );
  expect(said[1]).toBe('status 0');
  expect(said.slice(-6)).toEqual([expect.stringContaining('ENOSPC'), 'status 1', 'status 0', '201', 'status 0', '0']);
});
