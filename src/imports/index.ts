/**
 * Build edges from code: what a commit exports to other modules and what it imports, each with the line that says so. Found by each
 * language's own parser; nothing of the module runs. Which import is of which module only the inventory can tell, since
 * only it knows what all modules export.
 */
import type { Manifest } from '../schema/manifest';
import { bindExports } from './bindings';
import { assembled, declaredNames, type Graph } from './findings';
import { readGo } from './go';
import { readPython } from './python';
import { sourceTree } from './tree';
import type { Reader, Reading } from './types';

const READERS: readonly Reader[] = [
  { language: 'go', read: readGo },
  { language: 'python', read: readPython },
];

/**
 * @param root a checkout of one commit, untouched by any command of the module.
 * @throws EnvironmentError for what another builder, or this one later, could do: a missing tool, a time-out, a full disk.
 */
export async function deriveGraph(root: string, manifest: Manifest, reading: Reading): Promise<Graph> {
  const tree = await sourceTree(root, reading.signal);
  const found = new Map(await Promise.all(READERS.map(async ({ language, read }) => [language, await read(tree, reading)] as const)));
  return assembled(found, bindExports(manifest, declaredNames(found)));
}
