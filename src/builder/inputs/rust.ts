import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'smol-toml';
import { z } from 'zod';
import { ArchiveRefused } from '../../pack';
import type { Fetched } from './fetch';
import type { LaidLanguage, Place } from './place';
import { unpackEach } from './unpacked';

const cargoToml = z.object({ package: z.object({ name: z.string() }) });

/** Crates by their paths, in a config above the tree, which cargo reads after the tree's own. */
export async function layRust(inputs: readonly Fetched[], place: Place): Promise<LaidLanguage> {
  const patched: Record<string, { path: string }> = {};
  for (const { fetched, directory, inside } of await unpackEach(inputs, 'rust', place)) {
    const parsed = cargoToml.safeParse(parse(await readFile(join(directory, 'Cargo.toml'), 'utf8')));
    if (!parsed.success) throw new ArchiveRefused(`input ${fetched.input.module}/${fetched.input.artifact} has a Cargo.toml that names no package`);
    patched[parsed.data.package.name] = { path: inside };
  }
  await mkdir(join(place.tmp, '.cargo'));
  await writeFile(join(place.tmp, '.cargo', 'config.toml'), stringify({ patch: { 'crates-io': patched } }));
  return {};
}
