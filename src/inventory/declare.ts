import type { Manifest } from '../schema/manifest';
import type { Db } from './db';
import { lockNodes } from './locks';
import { isWoven, lockProvisioning, nodesAround, type Settled, settle, settlePlain } from './provisioning';
import { manifestOfBuild } from './surroundings';

export interface Declaring {
  readonly module: string;
  readonly buildId: string;
  readonly nodes: readonly string[];
  readonly by: string;
}

/**
 * The one write by which nodes' declarations name a new build. It repeats its conditions under the module's lock: fit,
 * still effective or named by a person, not held (but for the build that the hold is about). Where the build takes what
 * another has, or lacks what it requires, what runs stays and the placement says why. 0: compare again.
 */
export async function declareBuild(db: Db, { module, buildId, nodes, by }: Declaring): Promise<number> {
  return db.transaction(async (tx) => {
    const manifest = await manifestOfBuild(tx, module, buildId);
    const woven = manifest !== null && (isWoven(manifest) || (await wasWoven(tx, module))) ? manifest : null;
    if (woven !== null) await lockProvisioning(tx);
    await lockNodes(tx, woven === null ? nodes : [...nodes, ...(await nodesAround(tx, module, woven, nodes))]);
    const chosen = await tx.query(
      `select m.name from module m
       where m.name = $1 and (m.held_at is null or m.held_build = $2)
         and $2 in (m.effective_build, m.approved_build, m.held_build)
         and exists (select from build b where b.id = $2 and b.module = m.name and b.verdict = 'fit')
       for no key update`,
      [module, buildId],
    );
    if (chosen.length === 0) return 0;
    const settled = await settledFor(tx, { module, manifest, isWoven: woven !== null, nodes });
    await recordBlocked(tx, module, buildId, settled);
    const ready = nodes.filter((node) => (settled.get(node)?.kind ?? 'ready') === 'ready');
    const declared = await tx.query(
      `update placement p set build_id = $2, declared_at = now(), declared_by = $4, blocked_build = null, blocked_reason = null, blocked_since = null,
         blocked_needs_person = false
       where p.module = $1 and p.node = any ($3) and p.build_id is distinct from $2
       returning p.node`,
      [module, buildId, ready, by],
    );
    return declared.length;
  });
}

interface Asked {
  readonly module: string;
  /** null: it cannot be read any more, and the derivation says so. */
  readonly manifest: Manifest | null;
  readonly isWoven: boolean;
  readonly nodes: readonly string[];
}

async function settledFor(tx: Db, { module, manifest, isWoven: isAny, nodes }: Asked): Promise<ReadonlyMap<string, Settled>> {
  if (manifest === null) return new Map();
  return isAny ? await settle(tx, { module, manifest, nodes, isNew: false }) : await settlePlain(tx, { module, manifest, nodes });
}

/** What it required or provided before is let go of by the same rules. */
async function wasWoven(tx: Db, module: string): Promise<boolean> {
  const [row] = await tx.query<{ is: boolean }>(
    `select exists (select from claim where module = $1) or exists (select from offer where module = $1) or exists (select from binding where module = $1) as is`,
    [module],
  );
  return row?.is === true;
}

/** As long as the words stay the same, so does the since. */
async function recordBlocked(tx: Db, module: string, buildId: string, settled: ReadonlyMap<string, Settled>): Promise<void> {
  const rows = [...settled].flatMap(([node, one]) => (one.kind === 'ready' ? [] : [{ node, reason: one.reason, isRefused: one.kind === 'refused' }]));
  if (rows.length === 0) return;
  await tx.query(
    `update placement p set blocked_build = $2, blocked_reason = b.reason, blocked_needs_person = b."isRefused",
       blocked_since = case when p.blocked_reason = b.reason then p.blocked_since else now() end
     from jsonb_to_recordset($3::jsonb) b (node text, reason text, "isRefused" boolean)
     where p.module = $1 and p.node = b.node and (p.blocked_build, p.blocked_reason, p.blocked_needs_person) is distinct from ($2, b.reason, b."isRefused")`,
    [module, buildId, JSON.stringify(rows)],
  );
}
