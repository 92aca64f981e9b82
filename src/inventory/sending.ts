import { type Derived, type DerivedFrom, deriveDeclaration } from '../domain/derive';
import { short } from '../domain/line';
import type { Times } from '../domain/times';
import { type ArtifactRef, DECLARATION_VERSION, type Declaration } from '../schema/declaration';
import { manifest } from '../schema/manifest';
import type { Sealing } from './credentials';
import type { Db } from './db';
import { toText } from './text';
import { readWoven, recordIncluded, type Woven } from './woven';

export type Prepared =
  | { readonly kind: 'send'; readonly declaration: Declaration }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'notWorkedOut'; readonly reason: string }
  /** Somebody else is at it, or there is no such node. */
  | { readonly kind: 'busy' };

/** Whoever prepared a send and did not say how it ended within this time has died. */
const LEASE_MS = 30_000;
/** A node is sent to at once, and after that not sooner again: of a hundred modules that change together it is told a few times and not a hundred. */
const GAP_MS = 500;
/** Confirmed declarations that are kept of a node. */
const KEPT = 10;

const NO_TROUBLE = 'send_trouble = null, send_trouble_since = null, send_attempts = 0';

export async function nodesToSend(db: Db, limit: number, now: Date): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select name from node
     where (version <> derived_version or send_again or (not_worked_out is null and derived_digest is distinct from sent_digest)) and (send_after is null or send_after <= $2)
       and (sent_at is null or sent_at <= $2::timestamptz - $3 * interval '1 millisecond')
     order by send_after nulls first, name limit $1`,
    [limit, now, GAP_MS],
  );
  return rows.map((row) => row.name);
}

/** What is done outside this room to derive a declaration. */
export interface Deriving {
  /** sha256 of the canonical JSON (RFC 8785) of a value. */
  readonly digest: (value: unknown) => string;
  readonly sealing: Sealing;
}

interface NodeRow {
  readonly mesh: string;
  readonly sealKey: string | null;
  readonly version: number;
  readonly facts: Record<string, string>;
  readonly reads: { versions: number[]; shapes: string[]; features?: string[] } | null;
  readonly highest: number;
  readonly sentDigest: string | null;
  readonly sentSequence: number | null;
  readonly sendAgain: boolean;
}

interface PlacedRow {
  readonly module: string;
  readonly build: string;
  readonly commit: string;
  readonly manifest: unknown;
  readonly artifacts: Record<string, ArtifactRef>;
}

/**
 * Under the node's lock: derive, take a fresh sequence, write the declaration down. Many changes become one send. The
 * caller publishes what it gets, then recordSent or recordSendFailure.
 */
export async function prepareSend(db: Db, node: string, { digest, sealing }: Deriving, now: Date): Promise<Prepared> {
  return db.transaction(async (tx) => {
    const [row] = await tx.query<NodeRow>(
      `select coalesce((select value #>> '{}' from setting where key = 'mesh'), 'home') as mesh, seal_key as "sealKey", version, facts, reads,
         greatest(own_sequence, received_sequence, applied_sequence) as highest, sent_digest as "sentDigest", sent_sequence as "sentSequence", send_again as "sendAgain"
       from node where name = $1 and (send_after is null or send_after <= $2) for no key update skip locked`,
      [node, now],
    );
    if (row === undefined) return { kind: 'busy' };
    const placed = await readPlaced(tx, node);
    const woven = await readWoven(tx, sealing, { mesh: row.mesh, node, sealKey: row.sealKey });
    const derived = derive(node, row, placed, woven, digest);
    if (derived.kind === 'notWorkedOut') {
      await recordNotWorkedOut(tx, node, row.version, derived, now);
      return { kind: 'notWorkedOut', reason: derived.reason };
    }
    const isNothing = derived.resources.length === 0 && row.sentSequence === null;
    const isSent = derived.digest === row.sentDigest && !row.sendAgain;
    const sequence = isNothing || isSent ? (row.sentSequence ?? 0) : row.highest + 1;
    await recordWanted(tx, node, placed, derived, sequence, now);
    await recordIncluded(tx, node, woven);
    await tx.query(`update node set derived_version = $2, derived_digest = $3, not_worked_out = null, not_worked_out_since = null where name = $1`, [
      node,
      row.version,
      isNothing ? null : derived.digest,
    ]);
    if (isNothing || isSent) {
      if (isNothing) await tx.query('update node set send_again = false where name = $1 and send_again', [node]);
      await tx.query(`update node set ${NO_TROUBLE}, send_after = null where name = $1 and send_trouble is not null`, [node]);
      return { kind: 'unchanged' };
    }
    const builds = Object.fromEntries(placed.map(({ module, build, commit }) => [module, { build, commit }]));
    const declaration: Declaration = {
      version: DECLARATION_VERSION,
      mesh: row.mesh,
      node,
      sequence,
      digest: derived.digest,
      builds,
      resources: [...derived.resources],
    };
    await keepDeclaration(tx, declaration, now);
    return { kind: 'send', declaration };
  });
}

async function readPlaced(tx: Db, node: string): Promise<PlacedRow[]> {
  return tx.query(
    `select p.module, b.id as build, b.commit, i.manifest,
       (select coalesce(jsonb_object_agg(a.name, jsonb_build_object('repository', a.repository, 'digest', a.digest, 'blob', a.blob, 'size', a.size)), '{}')
        from artifact a where a.build_id = b.id) as artifacts
     from placement p
     join build b on b.id = p.build_id
     left join inspection i on i.module = b.module and i.commit = b.commit
     where p.node = $1 order by p.module`,
    [node],
  );
}

function derive(node: string, row: NodeRow, placed: readonly PlacedRow[], woven: Woven, digest: Deriving['digest']): Derived {
  const modules: DerivedFrom[] = [];
  for (const { module, commit, manifest: written, artifacts } of placed) {
    const parsed = manifest.safeParse(written);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      return {
        kind: 'notWorkedOut',
        reason: `${module}: its manifest at ${short(commit)} cannot be read any more: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`,
        modules: [module],
      };
    }
    modules.push({ ...woven.modules.get(module), module, commit: short(commit), manifest: parsed.data, artifacts });
  }
  return deriveDeclaration({ node: { name: node, facts: row.facts, reads: row.reads }, version: DECLARATION_VERSION, modules }, digest);
}

/** Nothing is sent; what is at fault is owed. */
async function recordNotWorkedOut(
  tx: Db,
  node: string,
  version: number,
  { reason, modules }: Extract<Derived, { kind: 'notWorkedOut' }>,
  now: Date,
): Promise<void> {
  await tx.query(
    `update node set derived_version = $2, send_again = false, not_worked_out = $3,
       not_worked_out_since = case when not_worked_out = $3 then not_worked_out_since else $4 end
     where name = $1`,
    [node, version, toText(reason), now],
  );
  await tx.query(
    'update placement set want_build = null, want_digest = null, want_sequence = null where node = $1 and module = any ($2) and want_build is not null',
    [node, modules],
  );
}

/** A module without resources has nothing to apply: it is applied as soon as it is worked out. */
async function recordWanted(
  tx: Db,
  node: string,
  placed: readonly PlacedRow[],
  { modules }: Extract<Derived, { kind: 'derived' }>,
  sequence: number,
  now: Date,
): Promise<void> {
  const wanted = placed.map(({ module, build }) => ({ module, build, digest: modules[module]?.digest, isBare: modules[module]?.resources === 0 }));
  await tx.query(
    `update placement p set want_build = w.build, want_digest = w.digest,
       want_sequence = case when p.want_digest = w.digest then p.want_sequence else $3 end,
       applied_build = case when w."isBare" then w.build else p.applied_build end,
       applied_digest = case when w."isBare" then w.digest else p.applied_digest end,
       applied_sequence = case when w."isBare" then greatest(p.applied_sequence, $3) else p.applied_sequence end,
       applied_at = case when w."isBare" and p.applied_digest is distinct from w.digest then $4 else p.applied_at end
     from jsonb_to_recordset($2::jsonb) w (module text, build text, digest text, "isBare" boolean)
     where p.node = $1 and p.module = w.module
       and ((p.want_build, p.want_digest) is distinct from (w.build, w.digest) or w."isBare" and p.applied_digest is distinct from w.digest)`,
    [node, JSON.stringify(wanted), sequence, now],
  );
}

async function keepDeclaration(tx: Db, declaration: Declaration, now: Date): Promise<void> {
  const { node, sequence } = declaration;
  await tx.query(`update node set own_sequence = $2, send_after = $3::timestamptz + $4 * interval '1 millisecond' where name = $1`, [
    node,
    sequence,
    now,
    LEASE_MS,
  ]);
  await tx.query(
    `with old as (
       delete from declaration where node = $1 and sequence <> all (
         array(select sequence from declaration where node = $1 and confirmed_at is not null order by sequence desc limit $6))
     )
     insert into declaration (node, sequence, digest, content, created_at) values ($1, $2, $3, $4, $5)`,
    [node, sequence, declaration.digest, JSON.stringify(declaration), now, KEPT],
  );
}

/** Only after the broker's confirm. A later one that was confirmed before stays. */
export async function recordSent(db: Db, node: string, sequence: number, digest: string, now: Date): Promise<void> {
  await db.query(
    `with confirmed as (
       update declaration set confirmed_at = $4 where node = $1 and sequence = $2
     )
     update node set sent_sequence = $2, sent_digest = $3, sent_at = $4, ${NO_TROUBLE},
       send_after = null, send_again = false, lagging_beats = 0
     where name = $1 and coalesce(sent_sequence, 0) < $2`,
    [node, sequence, digest, now],
  );
}

/** Nothing was sent: tried again with capped backoff, with the since of the first failure. */
export async function recordSendFailure(db: Db, node: string, reason: string, now: Date, times: Times): Promise<void> {
  await db.query(
    `update node set send_trouble = $2, send_trouble_since = coalesce(send_trouble_since, $3), send_attempts = send_attempts + 1,
       send_after = $3::timestamptz + least($4 * 2 ^ least(send_attempts, 30), $5) * interval '1 millisecond'
     where name = $1`,
    [node, toText(reason), now, times.retryFirst, times.retryMost],
  );
}
