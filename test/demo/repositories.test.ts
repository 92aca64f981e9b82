import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { demoRepository } from '../../src/demo/repositories';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tally-demo-git-'));
  mkdirSync(join(folder, 'example'));
  writeFileSync(join(folder, 'example', 'greeting'), 'hello\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const inSource = (address: string, ...args: string[]): string => execFileSync('git', ['-C', address, ...args], { encoding: 'utf8' }).trim();

test('a change is a commit in the bare repository', async () => {
  const repository = await demoRepository(folder, join(folder, 'example'), 'greeter');
  const first = await repository.head();
  const second = await repository.change('greet better', [{ file: 'greeting', find: 'hello', put: 'good morning' }]);
  expect(inSource(repository.address, 'rev-parse', 'main')).toBe(second);
  expect(inSource(repository.address, 'rev-parse', 'main~1')).toBe(first);
  expect(inSource(repository.address, 'show', 'main:greeting')).toBe('good morning');
});

test('a repository that is there already is gone on with', async () => {
  const before = await demoRepository(folder, join(folder, 'example'), 'greeter');
  const commit = await before.change('greet better', [{ file: 'greeting', find: 'hello', put: 'good morning' }]);
  const after = await demoRepository(folder, join(folder, 'example'), 'greeter');
  expect(await after.head()).toBe(commit);
});

test('a change of what is not there is refused, and nothing is committed', async () => {
  const repository = await demoRepository(folder, join(folder, 'example'), 'greeter');
  const first = await repository.head();
  await expect(repository.change('x', [{ file: 'greeting', find: 'absent', put: 'y' }])).rejects.toThrow('does not hold "absent"');
  expect(inSource(repository.address, 'rev-parse', 'main')).toBe(first);
});
