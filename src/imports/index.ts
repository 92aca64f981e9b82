/**
 * Build edges from code: what a commit exports to other modules and what it imports, each with the line that says so. Found by each
 * language's own parser; nothing of the module runs. Which import is of which module only the inventory can tell, since
 * only it knows what all modules export.
 */
import type { Manifest } from '../schema/manifest';
import type { Language } from '../schema/messages';
import { bindExports } from './bindings';
import { assembled, declaredNames, type Graph } from './findings';
import { readGo } from './go';
import { readJavaScript } from './javascript';
import { readPython } from './python';
import { readRust } from './rust';
import { sourceTree } from './tree';
import type { LanguageFindings, Reader, Reading } from './types';

const READERS: readonly Reader[] = [
  { language: 'go', read: readGo },
  { language: 'npm', read: readJavaScript },
  { language: 'python', read: readPython },
  { language: 'rust', read: readRust },
];

/**
 * @param root a checkout of one commit, untouched by any command of the module.
 * @throws EnvironmentError for what another builder, or this one later, could do: a missing tool, a time-out, a full disk.
 */
export async function deriveGraph(root: string, manifest: Manifest, reading: Reading): Promise<Graph> {
  const tree = await sourceTree(root, reading.signal);
  const ended = await Promise.allSettled(READERS.map(({ read }) => read(tree, reading)));
  // Only when none is at work any more: whoever called takes the tree away.
  const failed = ended.find((one) => one.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  const found = new Map<Language, LanguageFindings>();
  READERS.forEach(({ language }, at) => {
    const one = ended[at];
    if (one?.status === 'fulfilled') found.set(language, one.value);
  });
  return assembled(found, bindExports(manifest, declaredNames(found)));
}
