import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];

/** A directory that `removeScratch` takes away. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'tally-builder-'));
  made.push(directory);
  return directory;
}

export function removeScratch(): void {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
}
