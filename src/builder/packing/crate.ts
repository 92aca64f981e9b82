import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { packFiles } from '../../pack';
import type { BuiltTree } from './sources';
import { inside, sourcesOf } from './sources';

/** Nobody who builds on a crate reads its lock file. */
const NEVER = new Set(['Cargo.lock', 'module.yaml', '.gitignore']);
const PROSE = /^(readme|changelog|changes|contributing)(\.[a-z]+)?$/i;

/** A crate's directory without its build results, and without prose that its code does not include. */
export async function packCrate(directory: string, tree: BuiltTree, outFile: string): Promise<string | null> {
  const names = (await sourcesOf(tree, directory)).filter((name) => !name.startsWith('target/') && !NEVER.has(name));
  if (!names.includes('Cargo.toml')) return 'it has no Cargo.toml';
  const inherited = inheritedIn(await readFile(inside(directory, 'Cargo.toml'), 'utf8'));
  if (inherited !== null) return inherited;
  const prose = names.filter((name) => PROSE.test(name));
  const included = new Set<string>();
  if (prose.length > 0) {
    for (const name of names.filter((one) => one.endsWith('.rs'))) {
      const text = await readFile(inside(directory, name), 'utf8');
      for (const one of prose) if (text.includes(one)) included.add(one);
    }
  }
  await packFiles(
    directory,
    names.filter((name) => !prose.includes(name) || included.has(name)),
    outFile,
  );
  return null;
}

/** What a crate takes from the workspace around it is not there for others. */
function inheritedIn(text: string): string | null {
  let cargo: unknown;
  try {
    cargo = parse(text);
  } catch (error) {
    if (error instanceof TomlError) return `its Cargo.toml cannot be read: ${error.message.split('\n')[0] ?? ''}`;
    throw error;
  }
  if (typeof cargo !== 'object' || cargo === null) return null;
  const outside = pathOutside(cargo);
  if (outside !== null) return `its Cargo.toml depends on ${outside}, which others do not have: name a crate of the mesh by its version, as in "*"`;
  if ('workspace' in cargo) return null;
  const key = inheritedKey(cargo);
  return key === null ? null : `its Cargo.toml takes ${key} from a workspace, which others do not have: write it out there`;
}

function inheritedKey(table: object): string | null {
  for (const [key, value] of Object.entries(table) as Array<[string, unknown]>) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date) continue;
    if ('workspace' in value && value.workspace === true) return key;
    const below = inheritedKey(value);
    if (below !== null) return key === 'package' || key.endsWith('dependencies') ? below : `${key}.${below}`;
  }
  return null;
}

/** A dependency by a path that leaves the crate. */
function pathOutside(table: object): string | null {
  for (const [key, value] of Object.entries(table) as Array<[string, unknown]>) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date) continue;
    // What only its own tests need, nobody else resolves.
    if (key === 'dev-dependencies') continue;
    const path = key.endsWith('dependencies') ? pathsOf(value).find((one) => posix.normalize(one).startsWith('..')) : pathOutside(value);
    if (path != null) return path;
  }
  return null;
}

function pathsOf(dependencies: object): string[] {
  return (Object.values(dependencies) as unknown[]).flatMap((one) =>
    typeof one === 'object' && one !== null && 'path' in one && typeof one.path === 'string' ? [one.path] : [],
  );
}
