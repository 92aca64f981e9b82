/** A mesh to measure: real servers with data of their own, the control plane as a process of its own, a seeded store. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type Db, openInventory } from '../src/inventory/db';
import { migrate } from '../src/inventory/migrate';
import { type ServerAddresses, startServers } from '../src/servers';

type ServerName = 'temporal' | 'postgres' | 'rabbitmq' | 'registry';

export interface BenchServers {
  readonly addresses: ServerAddresses;
  readonly dir: string;
  readonly db: Db;
}

/** Starts the servers asked for, runs, and leaves nothing behind. */
export async function withServers<T>(
  only: readonly ServerName[],
  say: (text: string) => void,
  run: (servers: BenchServers) => Promise<T>,
): Promise<T> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'tally-bench-'));
  const reporter = {
    step: <S>(title: string, step: (detail: (text: string) => void) => Promise<S>): Promise<S> => step((detail) => say(`${title}: ${detail}`)),
  };
  const servers = await startServers({ dataDir: dir, reporter, only: [...only] });
  try {
    await migrate(servers.addresses.databaseUrl);
    const db = openInventory(servers.addresses.databaseUrl);
    try {
      return await run({ addresses: servers.addresses, dir, db });
    } finally {
      await db.close();
    }
  } finally {
    await servers.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

export const SEED_COMMIT = 'a'.repeat(40);

/**
 * Modules m00000… that are in step: head inspected, built and fit, nothing placed, compared. Set-based, as the store would
 * have left them and without its triggers.
 */
export async function seedModules(db: Db, count: number): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query('set local session_replication_role = replica');
    await tx.query(
      `insert into module (name, repository, ref, head_commit, head_since, read_at, next_read_at, edges_commit, closure)
       select 'm' || lpad(n::text, 5, '0'), 'file:///nowhere/m' || n, 'refs/heads/main', $2, now(), now(), now() + interval '1 day', $2, closure_of($2)
       from generate_series(0, $1::int - 1) n`,
      [count, SEED_COMMIT],
    );
    await tx.query(
      `insert into inspection (module, commit, request_id, outcome, manifest, answered_at)
       select name, head_commit, 'seed', 'valid', jsonb_build_object('module', name, 'declare', 'auto'), now() from module`,
    );
    await tx.query(
      `insert into request (id, kind, module, commit, platform, closure, body, state, answered_at)
       select 'seed-' || name, 'build', name, head_commit, 'linux-amd64', closure, '{}', 'answered', now() from module`,
    );
    await tx.query(
      `insert into build (id, module, commit, closure, verdict, answered_at) select 'seed-' || name, name, head_commit, closure, 'fit', now() from module`,
    );
    await tx.query(
      `update module set effective_build = 'seed-' || name, situation = 'in step', next = 'nothing', verdict = 'fit', line = 'seeded', in_step = true, compared_at = now(),
         compared_version = facts_version, nudged_version = facts_version`,
    );
  });
  await db.query('analyze');
}
