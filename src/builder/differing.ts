import { basename } from 'node:path';
import { hashesOfArchive, hashesOfWheel } from '../pack';
import { describeFile } from '../registry';
import type { Output } from './outputs';

export interface Differing {
  artifact: string;
  /** A path inside the artifact, or its own name where it is one file. */
  file: string;
}

const MOST = 1_000;

/** The files that two builds of the same made otherwise, or that only one of them made. */
export async function differingOf(first: readonly Output[], second: readonly Output[]): Promise<Differing[]> {
  const others = new Map(second.map((output) => [output.name, output]));
  const differing: Differing[] = [];
  for (const one of first) {
    const other = others.get(one.name);
    if (other === undefined) differing.push({ artifact: one.name, file: basename(one.path) });
    else if ((await describeFile(one.path)).digest !== (await describeFile(other.path)).digest)
      differing.push(...(await filesOf(one, other)).map((file) => ({ artifact: one.name, file })));
  }
  return differing.slice(0, MOST);
}

async function filesOf(one: Output, other: Output): Promise<string[]> {
  if (one.kind === 'file') return [basename(one.path)];
  const hashes = one.kind === 'wheel' ? hashesOfWheel : hashesOfArchive;
  const [mine, theirs] = [await hashes(one.path), await hashes(other.path)];
  const names = [...new Set([...mine.keys(), ...theirs.keys()])].filter((name) => mine.get(name) !== theirs.get(name)).sort();
  // Nothing that it holds, so the form itself.
  return names.length === 0 ? [basename(one.path)] : names;
}
