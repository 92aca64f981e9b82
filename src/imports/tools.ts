import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Of Tally itself, from the sources and from dist alike. */
export function packageFolder(): string {
  let root = __dirname;
  while (!existsSync(join(root, 'package.json')) && dirname(root) !== root) root = dirname(root);
  return root;
}

/** The compiler does not copy programs in other languages: they are read where they are written. */
export function programsFolder(): string {
  return join(packageFolder(), 'src', 'imports', 'programs');
}

/** Where the commands of modules find their tools too: not in the packages of Tally itself. */
export function toolPath(): string {
  const own = (process.env.PATH ?? '').split(':').filter((entry) => entry.startsWith('/') && !entry.includes('/node_modules/'));
  return [...new Set([...own, '/usr/local/bin', '/usr/bin', '/bin'])].join(':');
}
