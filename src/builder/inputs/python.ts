import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ArchiveRefused, unpackWheel } from '../../pack';
import type { Fetched } from './fetch';
import type { LaidLanguage, Place } from './place';

/** All wheels into one directory on the path of imports, with their descriptions, so that pip counts them as installed. */
export async function layPython(inputs: readonly Fetched[], place: Place): Promise<LaidLanguage> {
  const directory = join(place.directory, 'python');
  await mkdir(directory);
  for (const { input, file } of inputs) {
    try {
      await unpackWheel(file, directory);
    } catch (error) {
      throw error instanceof ArchiveRefused ? new ArchiveRefused(`input ${input.module}/${input.artifact} ${error.message}`) : error;
    }
  }
  return { env: { PYTHONPATH: `${place.inside}/python` } };
}
