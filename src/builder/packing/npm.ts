import { readFile } from 'node:fs/promises';
import packlist from 'npm-packlist';
import { z } from 'zod';
import { packFiles } from '../../pack';
import { inside } from './sources';

/** All that decides what npm packs. Packages that one carries along are not taken: what it needs is fetched where it is used. */
const packageJson = z.object({
  name: z.string().min(1),
  files: z.array(z.string()).optional(),
  main: z.string().optional(),
  browser: z.union([z.string(), z.record(z.string(), z.unknown())]).optional(),
  bin: z.union([z.string().transform((bin) => ({ bin })), z.record(z.string(), z.string())]).optional(),
});

const PROSE = /^readme(\.[a-z]+)?$/i;

/** What `npm pack` would take, in npm's own layout, but for a README that the package does not name in its `files`. No script of the package runs. */
export async function packNpm(directory: string, outFile: string): Promise<string | null> {
  const text = await readFile(inside(directory, 'package.json'), 'utf8').catch(() => null);
  if (text === null) return 'it has no package.json';
  const read = packageJson.safeParse(parsed(text));
  if (!read.success)
    return `its package.json cannot be packed: ${read.error.issues[0]?.path.join('.') || 'it'} is ${read.error.issues[0]?.message ?? 'wrong'}`;
  const named = new Set((read.data.files ?? []).map((name) => name.replace(/^\.?\//, '')));
  const names = await packlist({ path: directory, package: read.data, isProjectRoot: true, edgesOut: new Map<string, never>() });
  await packFiles(
    directory,
    names.filter((name) => !PROSE.test(name) || named.has(name)),
    outFile,
    'package/',
  );
  return null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
