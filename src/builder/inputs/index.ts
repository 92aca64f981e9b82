/**
 * What a module builds on, fetched by digest and laid where each language's own tool finds it: outside the checked-out tree, into which
 * nothing is written, and read-only for the commands. `TALLY_INPUTS` tells them where.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EnvironmentError } from '../../domain/errors';
import type { Reading, SourceTree } from '../../imports/types';
import { ArchiveRefused } from '../../pack';
import type { RegistryClient } from '../../registry';
import type { Input } from '../../schema/messages';
import type { ArtifactKind } from '../../schema/primitives';
import type { Work } from '../home';
import { type Mount, TMP_INSIDE } from '../sandbox';
import { type Fetched, fetchInputs } from './fetch';
import { layGo } from './go';
import { layNpm } from './npm';
import type { LaidLanguage, Place } from './place';
import { layPython } from './python';
import { layRust } from './rust';

export interface Laid {
  /** The closure as it was fetched. */
  readonly recorded: readonly Input[];
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  readonly complete: string | null;
}

const NOTHING: Laid = { recorded: [], env: {}, mounts: [], complete: null };

const LANGUAGES: ReadonlyArray<readonly [ArtifactKind, (inputs: readonly Fetched[], place: Place) => Promise<LaidLanguage | string>]> = [
  ['go', layGo],
  ['npm', layNpm],
  ['wheel', layPython],
  ['crate', layRust],
];

/**
 * @returns a string where two of them cannot be laid beside one another, which is no trouble of the surroundings'.
 * @throws EnvironmentError for whatever the registry does not give.
 */
export async function layInputs(
  inputs: readonly Input[],
  registry: RegistryClient,
  work: Work,
  tree: SourceTree,
  reading: Reading,
): Promise<Laid | string> {
  if (inputs.length === 0) return NOTHING;
  const other = inputs.find(({ kind }) => !LANGUAGES.some(([known]) => known === kind));
  if (other !== undefined)
    throw new EnvironmentError(`this builder cannot lay out an input of kind ${other.kind} (${other.module}/${other.artifact}): start a newer one`);
  const fetched = await fetchInputs(inputs, registry, join(work.directory, 'fetched'), reading.signal);
  const place: Place = { directory: join(work.directory, 'inputs'), inside: `${TMP_INSIDE}/inputs`, tmp: work.tmp, tree, reading };
  await mkdir(place.directory);
  const laid: LaidLanguage[] = [];
  for (const [kind, lay] of LANGUAGES) {
    const mine = fetched.filter(({ input }) => input.kind === kind);
    if (mine.length === 0) continue;
    try {
      const one = await lay(mine, place);
      if (typeof one === 'string') return one;
      laid.push(one);
    } catch (error) {
      if (error instanceof ArchiveRefused) return error.message;
      throw error;
    }
  }
  return {
    recorded: fetched.map(({ input }) => input),
    env: Object.assign({ TALLY_INPUTS: place.inside }, ...laid.map(({ env }) => env)),
    mounts: [{ from: place.directory, at: 'inputs' }, ...laid.flatMap(({ mounts }) => mounts ?? [])],
    complete: laid.map(({ complete }) => complete).find((one) => one != null) ?? null,
  };
}
