import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of Tally's package.json, found from the sources and from dist alike. */
export function packageRoot(): string {
  let folder = __dirname;
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

/** Programs that were fetched are shared by all data directories of one clone. */
export function programsDir(dataDir: string): string {
  const ofClone = join(packageRoot(), '.tally', 'programs');
  try {
    mkdirSync(ofClone, { recursive: true });
    accessSync(ofClone, constants.W_OK);
    return ofClone;
  } catch {
    // An installation that we may not write to.
    const ofData = join(dataDir, 'programs');
    mkdirSync(ofData, { recursive: true });
    return ofData;
  }
}

export function serversDir(dataDir: string): string {
  return join(dataDir, 'servers');
}
