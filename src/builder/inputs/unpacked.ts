import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ArchiveRefused, unpackArchive } from '../../pack';
import type { Fetched } from './fetch';
import type { Place } from './place';

export interface Unpacked {
  readonly fetched: Fetched;
  readonly directory: string;
  /** The same as the commands see it. */
  readonly inside: string;
}

/** Each archive into `<language>/<module>/<artifact>`. */
export async function unpackEach(inputs: readonly Fetched[], language: string, place: Place): Promise<Unpacked[]> {
  const unpacked: Unpacked[] = [];
  for (const fetched of inputs) {
    const { module, artifact } = fetched.input;
    await mkdir(join(place.directory, language, module), { recursive: true });
    const directory = join(place.directory, language, module, artifact);
    try {
      await unpackArchive(fetched.file, directory);
    } catch (error) {
      throw error instanceof ArchiveRefused ? new ArchiveRefused(`input ${module}/${artifact} ${error.message}`) : error;
    }
    unpacked.push({ fetched, directory, inside: `${place.inside}/${language}/${module}/${artifact}` });
  }
  return unpacked;
}
