import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { packFiles } from '../../pack';
import type { BuiltTree } from './sources';
import { directoriesAbove, inside, isBelowAny, sourcesOf } from './sources';

/** What the Go tool reads of a package without being told in the code. */
const READ = /\.(go|s|S|sx|c|cc|cpp|cxx|m|h|hh|hpp|hxx|f|F|for|f90|swig|swigcxx|syso)$/;
const EMBEDS = /^\s*\/\/go:embed\s/m;
const C = /^\s*(?:import\s+)?"C"\s*$/m;

/**
 * A Go module as others compile it: no tests, no `vendor`, no nested module, and no file that the compiler does not read, so that
 * a change of the README makes no other module. Where code embeds files, those of its directory stay; where it calls C, all do.
 */
export async function packGo(directory: string, tree: BuiltTree, outFile: string): Promise<string | null> {
  const names = await sourcesOf(tree, directory);
  if (!names.includes('go.mod')) return 'it has no go.mod';
  const nested = names.filter((name) => name !== 'go.mod' && posix.basename(name) === 'go.mod').map((name) => posix.dirname(name));
  const own = names.filter((name) => !isBelowAny(name, nested) && !isLeftOut(name));
  const embedding = new Set<string>();
  let callsC = false;
  for (const name of own.filter((one) => one.endsWith('.go'))) {
    const text = await readFile(inside(directory, name), 'utf8');
    if (EMBEDS.test(text)) embedding.add(posix.dirname(name));
    callsC ||= C.test(text);
  }
  const isKept = (name: string): boolean =>
    callsC || READ.test(name) || name === 'go.mod' || name === 'go.sum' || directoriesAbove(name).some((above) => embedding.has(above));
  await packFiles(directory, own.filter(isKept), outFile);
  return null;
}

function isLeftOut(name: string): boolean {
  const parts = name.split('/');
  return name.endsWith('_test.go') || parts.slice(0, -1).some((part) => part === 'vendor' || part === 'testdata');
}
