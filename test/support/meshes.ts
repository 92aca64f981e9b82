/** A mesh in the middle of its day, written straight into the store: what readers of it are tested with. */
import type { Db } from '../../src/inventory';

export const COMMITS = { fit: '77ab310'.padEnd(40, '0'), failed: '9c1f0e2'.padEnd(40, '1'), moving: '4f2c1a9'.padEnd(40, '2') } as const;

interface Situated {
  readonly module: string;
  readonly head: string;
  readonly situation: string;
  readonly verdict?: string;
  readonly next?: string;
  readonly line: string;
  readonly reason: string;
  readonly secondsAgo?: number;
  readonly needsPerson?: boolean;
  readonly inStep?: boolean;
}

/** As a comparison would have left the module. */
export async function situate(db: Db, row: Situated): Promise<void> {
  await db.query(
    `insert into module (name, repository, ref, head_commit, head_since) values ($1, 'https://git.example/' || $1 || '.git', 'main', $2, now()) on conflict (name) do update set head_commit = $2`,
    [row.module, row.head],
  );
  await db.query(
    `update module set situation = $2, verdict = $3, next = $4, line = $5, reason = $6, since = now() - $7 * interval '1 second', needs_person = $8, in_step = $9,
       compared_version = facts_version, compared_at = now() where name = $1`,
    [
      row.module,
      row.situation,
      row.verdict ?? 'outstanding',
      row.next ?? 'nothing',
      row.line,
      row.reason,
      row.secondsAgo ?? 0,
      row.needsPerson ?? false,
      row.inStep ?? false,
    ],
  );
}

export async function inStep(db: Db, module: string): Promise<void> {
  await situate(db, {
    module,
    head: COMMITS.fit,
    situation: 'in step',
    verdict: 'fit',
    line: 'source 77ab310 · built from 77ab310 · fit · declared on 1 · applied on 1',
    reason: 'source, built, declared and applied agree',
    inStep: true,
  });
  await db.query('update module set since = null where name = $1', [module]);
}

/** A build that was answered, with its request. */
export async function answeredBuild(
  db: Db,
  build: { id: string; module: string; commit: string; verdict: 'fit' | 'failed'; reason?: string; log?: string },
): Promise<void> {
  await db.query(
    `insert into request (id, kind, module, commit, closure, platform, body, state, requested_at, answered_at, completed_at)
     values ($1, 'build', $2, $3, $1, 'linux-amd64', '{}', 'answered', now() - interval '10 minutes', now() - interval '9 minutes', now())`,
    [build.id, build.module, build.commit],
  );
  await db.query(
    `insert into build (id, module, commit, closure, verdict, reason, answered_at, built_by, log) values ($1, $2, $3, $1, $4, $5, now() - interval '9 minutes', 'builder-1', $6)`,
    [build.id, build.module, build.commit, build.verdict, build.reason ?? null, build.log ?? null],
  );
}

/** The example of the design: two modules that need a person, one that moves, the rest in step; three nodes, one of them away. */
export async function aDay(db: Db): Promise<void> {
  for (const module of ['core', 'board-types', 'site']) await inStep(db, module);
  await situate(db, {
    module: 'kiosk',
    head: COMMITS.failed,
    situation: 'failed',
    verdict: 'failed',
    line: 'source 9c1f0e2 · failed at 9c1f0e2 since 2026-11-29T14:02Z · 1 of 14 tests · 77ab310 stays declared · declared on 3 · applied on 3',
    reason: '9c1f0e2 failed: 1 of 14 tests',
    secondsAgo: 3_600,
    needsPerson: true,
  });
  await situate(db, {
    module: 'meshboard',
    head: COMMITS.moving,
    situation: 'building',
    next: 'build',
    line: 'source 4f2c1a9 · building on builder-1 since 2026-11-29T14:02Z · declared on 3 · applied on 3',
    reason: 'source moved to 4f2c1a9, built from 81b07aa; builder-1 is at test',
    secondsAgo: 40,
  });
  await answeredBuild(db, { id: 'build-core', module: 'core', commit: COMMITS.fit, verdict: 'fit' });
  for (const [node, beat] of [
    ['alpha', "now() - interval '5 seconds'"],
    ['beta', "now() - interval '3 hours'"],
    ['gamma', "now() - interval '5 seconds'"],
  ]) {
    await db.query(`insert into node (name, broker_user, last_beat_at) values ($1, 'node-' || $1, ${beat})`, [node]);
  }
  await situate(db, {
    module: 'greeter',
    head: COMMITS.fit,
    situation: 'stuck',
    verdict: 'fit',
    next: 'track',
    line: 'source 77ab310 · built from 77ab310 · fit · declared on 1 · applied on 0, 1 outstanding (gamma stuck on service/greeter)',
    reason: 'gamma: service/greeter · exit status 203',
    secondsAgo: 1_800,
    needsPerson: true,
  });
  await answeredBuild(db, { id: 'build-greeter', module: 'greeter', commit: COMMITS.fit, verdict: 'fit' });
  await db.query(
    `insert into placement (module, node, build_id, failing_resources, failing_count, failing_since, failing_message, outstanding_since)
     values ('greeter', 'gamma', 'build-greeter', '{service/greeter}', 5, now() - interval '30 minutes', 'exit status 203', now() - interval '31 minutes')`,
  );
  // The trigger of the placement asked for a comparison that nobody makes here.
  await db.query('update module set compared_version = facts_version');
}
