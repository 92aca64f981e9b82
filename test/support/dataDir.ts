import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopLeftovers } from '../../src/servers';

const PREFIX = 'tally-test-';

/** A new data directory for servers, named for the process that answers for it. */
export function newDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
  // PostgreSQL of root runs as another user, who must come through.
  chmodSync(dataDir, 0o755);
  return dataDir;
}

/** Stops and deletes what processes of tests that were killed have left. */
export async function removeAbandoned(): Promise<void> {
  for (const entry of readdirSync(tmpdir())) {
    const [, pid] = /^tally-test-(\d+)-/.exec(entry) ?? [];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    await stopLeftovers(join(tmpdir(), entry));
    rmSync(join(tmpdir(), entry), { recursive: true, force: true });
  }
}
