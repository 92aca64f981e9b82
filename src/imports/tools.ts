import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The compiler does not copy programs in other languages: they are read where they are written, from the sources and from dist alike. */
export function programsFolder(): string {
  let root = __dirname;
  while (!existsSync(join(root, 'package.json')) && dirname(root) !== root) root = dirname(root);
  return join(root, 'src', 'imports', 'programs');
}

/** Where the commands of modules find their tools too: not in the packages of Tally itself. */
export function toolPath(): string {
  const own = (process.env.PATH ?? '').split(':').filter((entry) => entry.startsWith('/') && !entry.includes('/node_modules/'));
  return [...new Set([...own, '/usr/local/bin', '/usr/bin', '/bin'])].join(':');
}
