import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { ArchiveRefused, unpackArchive } from '../../pack';
import type { Fetched } from './fetch';
import type { LaidLanguage, Place } from './place';

const ranges = z.record(z.string(), z.string()).optional();
const packageJson = z.object({ name: z.string().regex(/^(@[\w.~-]+\/)?[\w.~-]+$/), dependencies: ranges, optionalDependencies: ranges });

interface Package {
  readonly name: string;
  readonly fetched: Fetched;
  /** What it needs besides other inputs. */
  readonly needsOthers: boolean;
}

/**
 * Packages into a `node_modules` above the tree, where Node and the TypeScript compiler look after the tree's own. What they need of
 * others npm brings, each input held to its own tarball however deep it is asked for, without running a script of anyone's.
 */
export async function layNpm(inputs: readonly Fetched[], place: Place): Promise<LaidLanguage> {
  const root = join(place.directory, 'npm');
  const modules = join(root, 'node_modules');
  await mkdir(modules, { recursive: true });
  const read: Array<Omit<Package, 'needsOthers'> & { asks: string[] }> = [];
  for (const fetched of inputs) read.push(await unpack(fetched, root, modules));
  const names = new Set(read.map(({ name }) => name));
  const packages = read.map(({ asks, ...one }): Package => ({ ...one, needsOthers: asks.some((name) => !names.has(name)) }));
  const mounts = [{ from: modules, at: 'node_modules' }];
  if (!packages.some(({ needsOthers }) => needsOthers)) return { mounts };

  await mkdir(join(root, 'tarballs'));
  for (const { fetched } of packages) await rename(fetched.file, join(root, 'tarballs', tarballOf(fetched)));
  const dependencies = Object.fromEntries(packages.map(({ name, fetched }) => [name, `file:tarballs/${tarballOf(fetched)}`]));
  const overrides = Object.fromEntries([...names].map((name) => [name, `$${name}`]));
  await writeFile(join(root, 'package.json'), JSON.stringify({ private: true, dependencies, overrides }));
  const options = '--ignore-scripts --no-audit --no-fund --no-package-lock --install-links --omit=dev';
  return { mounts, complete: `cd ${place.inside}/npm && npm install ${options}` };
}

async function unpack(fetched: Fetched, root: string, modules: string): Promise<Omit<Package, 'needsOthers'> & { asks: string[] }> {
  const { module, artifact } = fetched.input;
  const temporary = join(root, `${module}-${artifact}`);
  await unpackArchive(fetched.file, temporary);
  const inner = join(temporary, 'package');
  const parsed = packageJson.safeParse(JSON.parse(await readFile(join(inner, 'package.json'), 'utf8')));
  if (!parsed.success) throw new ArchiveRefused(`input ${module}/${artifact} has a package.json that names no package`);
  const { name, dependencies, optionalDependencies } = parsed.data;
  const target = join(modules, name);
  await mkdir(dirname(target), { recursive: true });
  await rename(inner, target).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOTEMPTY' || error.code === 'EEXIST' ? new ArchiveRefused(`two inputs are the npm package ${name}`) : error;
  });
  await rm(temporary, { recursive: true, force: true });
  return { name, fetched, asks: Object.keys({ ...dependencies, ...optionalDependencies }) };
}

function tarballOf({ input }: Fetched): string {
  return `${input.module}-${input.artifact}.tgz`;
}
