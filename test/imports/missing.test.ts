import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deriveIn, removeRepositories, repository } from './repository';

let path = '/nowhere';

jest.mock('../../src/imports/tools', () => ({ ...jest.requireActual<object>('../../src/imports/tools'), toolPath: () => path }));

afterAll(removeRepositories);

describe('a builder without a language', () => {
  test.each([
    ['a.go', 'package a\n', 'there is no `go` on the path of this builder: install Go'],
    ['go.mod', 'module example.com/a\n', 'there is no `go` on the path of this builder: install Go'],
    ['a.py', 'import b\n', 'there is no `python3` on the path of this builder: install Python'],
  ])('says of %s what to install', async (file, text, said) => {
    await expect(deriveIn(repository({ [file]: text }))).rejects.toMatchObject({ kind: 'environment', message: expect.stringContaining(said) });
  });

  test('reads a repository that has none of it', async () => {
    expect(await deriveIn(repository({ 'README.md': 'import go' }))).toEqual({ exports: [], imports: [], unknown: [], notes: [] });
  });

  test('or with one that does not work says what it said', async () => {
    path = repository({});
    writeFileSync(join(path, 'go'), '#!/bin/sh\nexit 3\n', { mode: 0o755 });
    await expect(deriveIn(repository({ 'a.go': 'package a\n' }))).rejects.toThrow('read the Go code: go env: ended with status 3');
  });
});

/** Stands for a Python whose parser some files end. */
const fragile = `#!${process.execPath}
const { readFileSync, writeSync } = require('node:fs');
writeSync(1, '{"standard":["os"]}\\n');
for (const [at, path] of readFileSync(0, 'utf8').split('\\0').slice(0, -1).entries()) {
  if (path.startsWith('heavy') && at > 0) process.kill(process.pid, 'SIGKILL');
  if (path.startsWith('kill')) process.kill(process.pid, 'SIGKILL');
  if (path.startsWith('slow')) process.kill(process.pid, 'SIGVTALRM');
  writeSync(1, JSON.stringify({ imports: [['of_' + path.replace('.py', ''), 0, null, 1], ['os', 0, null, 2]] }) + '\\n');
}
`;

describe('a file that ends the parser', () => {
  const found = (names: string[]) => deriveIn(repository(Object.fromEntries(names.map((name) => [name, '']))));

  test('is said to be unparsed, and those beside it are read', async () => {
    path = repository({});
    writeFileSync(join(path, 'python3'), fragile, { mode: 0o755 });
    const { imports, unknown } = await found(['a.py', 'heavy.py', 'kill.py', 'm.py', 'slow.py', 'z.py']);
    expect(imports.map(({ name }) => name)).toEqual(['of_a', 'of_heavy', 'of_m', 'of_z']);
    expect(unknown.map(({ kind, file, reason }) => `${kind} ${file} ${reason}`)).toEqual([
      'unparsed kill.py it ends the parser (SIGKILL)',
      'unparsed slow.py it takes longer than 20 s to be parsed',
    ]);
  });

  test('is given up after some, and the others are said to be unread', async () => {
    const { unknown } = await found([...Array.from({ length: 12 }, (_, n) => `kill${n}.py`), 'z.py']);
    expect(unknown).toHaveLength(13);
    expect(unknown.map(({ reason }) => reason).slice(9, 11)).toEqual([
      'it ends the parser (SIGKILL)',
      'it was not read: 10 files before it ended the parser',
    ]);
  });
});
