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
    await expect(deriveIn(repository({ 'a.go': 'package a\n' }))).rejects.toThrow('read what the Go code imports: go env: ended with status 3');
  });
});
