import { UsageError } from '../domain/errors';
import { short } from '../domain/line';
import type { Db } from './db';
import { declareBuild } from './declare';
import { lockNodes } from './locks';
import { lockProvisioning } from './provisioning';
import { endStopped } from './retry';

export type IntentVerb = 'declare' | 'rebuild' | 'hold' | 'release' | 'rollback' | 'cancel';

export interface AskedIntent {
  /** Asking twice with the same id is asking once. */
  readonly id: string;
  readonly verb: IntentVerb;
  readonly module: string;
  readonly node: string | null;
  readonly buildId: string | null;
  /** Of a rebuild: build it twice and say what differs. */
  readonly check?: boolean | undefined;
  readonly who: string;
  readonly why: string;
}

interface Standing {
  readonly head: string | null;
  readonly inspection: 'valid' | 'invalid' | null;
  readonly isBuilding: boolean;
  readonly isChecking: boolean;
  readonly isHeld: boolean;
  readonly effective: string | null;
  readonly effectiveCommit: string | null;
  readonly undeclared: number;
  readonly nodes: readonly string[];
}

/** Written down and carried out in one transaction; one line of answer. A refusal is a UsageError. */
export async function recordIntent(db: Db, asked: AskedIntent): Promise<string> {
  return db.transaction(async (tx) => {
    if (asked.verb === 'rollback') {
      await lockProvisioning(tx);
      await lockNodes(tx, await nodesOf(tx, asked.module));
    }
    const standing = await readStanding(tx, asked.module);
    const fresh = await tx.query(
      'insert into intent (id, verb, module, node, build_id, who, why) values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing returning id',
      [asked.id, asked.verb, asked.module, asked.node, asked.buildId, asked.who, asked.why],
    );
    if (fresh.length === 0) {
      const [before] = await tx.query<{ says: string }>('select says from intent where id = $1', [asked.id]);
      return before?.says ?? '';
    }
    const says = await verbs[asked.verb](tx, asked, standing);
    await tx.query('update intent set says = $2 where id = $1', [asked.id, says]);
    return says;
  });
}

type CarryOut = (tx: Db, asked: AskedIntent, standing: Standing) => Promise<string>;

const verbs: Readonly<Record<IntentVerb, CarryOut>> = {
  async hold(tx, { module, who, why }) {
    await tx.query('update module set held_at = coalesce(held_at, now()), held_by = $2, held_why = $3, held_build = null where name = $1', [
      module,
      who,
      why,
    ]);
    return `${module} is held: it builds and is judged, and nothing is declared until tally release ${module}`;
  },

  async release(tx, { module }, { isHeld }) {
    if (!isHeld) throw new UsageError(`${module} is not held: nothing to release`);
    await tx.query('update module set held_at = null, held_by = null, held_why = null, held_build = null where name = $1', [module]);
    return `${module} is released`;
  },

  async declare(tx, { module, buildId, who }, { effective, effectiveCommit, isHeld, undeclared }) {
    if (effective === null || effectiveCommit === null) throw new UsageError(`${module} has no fit build to declare yet: tally why ${module}`);
    if (buildId !== null && buildId !== effective) {
      throw new UsageError(`the build of ${module} that may be declared is ${short(effectiveCommit)}: tally rollback goes back to an earlier one`);
    }
    if (isHeld) throw new UsageError(`${module} is held: tally release ${module} first`);
    await tx.query('update module set approved_build = $2, approved_by = $3 where name = $1', [module, effective, who]);
    return undeclared === 0
      ? `${short(effectiveCommit)} is declared on all its nodes already`
      : `${short(effectiveCommit)} is to be declared on ${undeclared} ${undeclared === 1 ? 'node' : 'nodes'}`;
  },

  async rebuild(tx, { module, who, check = false }, { head, inspection, isBuilding, isChecking }) {
    if (head === null) throw new UsageError(`the source of ${module} has not been read yet: tally why ${module}`);
    if (inspection === 'invalid') throw new UsageError(`the manifest of ${module} at ${short(head)} is invalid: mend it and push`);
    if (isBuilding && (isChecking || !check)) {
      // One that waits out its backoff is tried now.
      await tx.query(`update request set retry_at = now() where module = $1 and state = 'requested' and retry_at > now()`, [module]);
      return `a build of ${short(head)} is under way`;
    }
    await tx.query('update module set again_at = now(), again_by = $2, again_check = $3 where name = $1', [module, who, check]);
    if (!check) return `${short(head)} is to be built again`;
    return `${short(head)} is to be built twice${isBuilding ? ', once the build that is under way has ended' : ''}`;
  },

  async rollback(tx, { module, buildId, who, why }, { nodes }) {
    const [build] = await tx.query<{ id: string; commit: string; verdict: string | null }>(
      'select id, commit, verdict from build where module = $1 and id = $2',
      [module, buildId],
    );
    if (build === undefined) throw new UsageError(`${module} has no build ${buildId ?? ''}: tally module show ${module} lists its builds`);
    if (build.verdict !== 'fit') throw new UsageError(`${short(build.commit)} of ${module} is not fit: only a fit build can be declared`);
    await tx.query(
      'update module set held_at = now(), held_by = $2, held_why = $3, held_build = $4, approved_build = null, approved_by = null where name = $1',
      [module, who, why, build.id],
    );
    const declared = await declareBuild(tx, { module, buildId: build.id, nodes, by: who });
    const [blocked] = await tx.query<{ node: string; reason: string }>(
      'select node, blocked_reason as reason from placement where module = $1 and blocked_build = $2 order by node limit 1',
      [module, build.id],
    );
    // Held, nothing would try it again: it is declared everywhere or not at all.
    if (blocked !== undefined) throw new UsageError(`${short(build.commit)} of ${module} is not declared on ${blocked.node}: ${blocked.reason}`);
    return `${short(build.commit)} is declared on ${declared} more of ${nodes.length} nodes and held: tally release ${module} lifts that`;
  },

  async cancel(tx, { module, buildId, who, why }) {
    const told = await tx.query<{ id: string; commit: string; state: string }>(
      `update request set stop_reason = 'cancelled by ' || $3::text || ': ' || $4::text, stopped_by = $3
       where module = $1 and kind = 'build' and state in ('requested', 'published', 'taken') and ($2::text is null or id = $2) and stopped_by is null
       returning id, commit, state`,
      [module, buildId, who, why],
    );
    const [first] = told;
    if (first === undefined) throw new UsageError(`no build of ${module} is under way: tally why ${module}`);
    // At once also what runs, or the same commit would be asked for anew before its builder has heard of it.
    const ids = told.map((one) => one.id);
    await endStopped(tx, ids, new Date());
    return told.every((one) => one.state !== 'taken')
      ? `the build of ${short(first.commit)} is cancelled`
      : `the build of ${short(first.commit)} is told to stop`;
  },
};

async function nodesOf(tx: Db, module: string): Promise<string[]> {
  return (await tx.query<{ node: string }>('select node from placement where module = $1', [module])).map((row) => row.node);
}

/** Under the module's lock, so that what is decided here holds until it is written. */
async function readStanding(tx: Db, module: string): Promise<Standing> {
  const [standing] = await tx.query<Standing>(
    `select m.head_commit as head, i.outcome as inspection, m.held_at is not null as "isHeld", e.id as effective, e.commit as "effectiveCommit",
       exists (select from request r where r.module = m.name and r.kind = 'build' and r.commit = m.head_commit and r.state in ('requested', 'published', 'taken') and r.stop_reason is null) as "isBuilding",
       exists (select from request r where r.module = m.name and r.kind = 'build' and r.commit = m.head_commit and r.state in ('requested', 'published', 'taken') and r.stop_reason is null
         and r.body ->> 'check' = 'true') as "isChecking",
       (select count(*) from placement p where p.module = m.name and p.build_id is distinct from m.effective_build) as undeclared,
       array(select p.node from placement p where p.module = m.name order by p.node) as nodes
     from module m
     left join inspection i on i.module = m.name and i.commit = m.head_commit
     left join build e on e.id = m.effective_build
     where m.name = $1 for no key update of m`,
    [module],
  );
  if (standing === undefined) throw new UsageError(`there is no module ${module}: tally module list`);
  return standing;
}

/** Send these nodes again (`again`: also what they hold already); null: all that are behind. Gives the names. */
export async function pushNodes(
  db: Db,
  asked: { readonly nodes: readonly string[] | null; readonly again: boolean; readonly who: string; readonly why: string },
): Promise<string[]> {
  const pushed = await db.query<{ name: string }>(
    `with pushed as (
       update node set send_after = null, send_again = send_again or $2
       where case when $1::text[] is null
         then $2 or version <> derived_version or send_again or derived_digest is distinct from sent_digest
         else name = any ($1) end
       returning name
     ), noted as (
       insert into intent (id, verb, node, who, why) select gen_random_uuid(), 'push', name, $3, $4 from pushed
     )
     select name from pushed order by name`,
    [asked.nodes, asked.again, asked.who, asked.why],
  );
  return pushed.map((node) => node.name);
}
