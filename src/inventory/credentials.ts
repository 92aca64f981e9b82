/**
 * What providers and holders of an instance share. Made once, sealed for the store; a node has it sealed to its own key in
 * a copy that is kept and used again, so that the same placements always give the same declaration.
 */
import type { SealedSecret } from '../schema/declaration';
import type { Db } from './db';

/** What is done with keys, which this room never holds. */
export interface Sealing {
  /** A new secret, in letters that need no quoting anywhere. */
  make(): string;
  /** For the store. @param subject what it is about, so that it cannot be moved elsewhere. */
  keep(text: string, subject: string): string;
  open(sealed: string, subject: string): string;
  /** For the node of this key alone. */
  sealToNode(
    sealKey: string,
    text: string,
    about: { readonly mesh: string; readonly node: string; readonly credential: string; readonly version: number },
  ): Promise<string>;
}

export interface CredentialOf {
  /** Id of the instance. */
  readonly owner: string;
  readonly name: string;
}

function subjectOf({ owner, name }: CredentialOf, version: number): string {
  return `credential/${owner}/${name}/${version}`;
}

/** Those that are there stay as they are. One that an instance gains later has the version of its others. */
export async function ensureCredentials(tx: Db, sealing: Sealing, wanted: readonly CredentialOf[]): Promise<void> {
  if (wanted.length === 0) return;
  const missing = await tx.query<CredentialOf & { version: number }>(
    `select distinct w.owner, w.name, coalesce((select max(version) from credential c where c.owner = w.owner), 1) as version
     from unnest($1::text[], $2::text[]) w (owner, name)
     where not exists (select from credential c where c.owner = w.owner and c.name = w.name)`,
    columnsOf(wanted),
  );
  await insertVersions(tx, sealing, missing);
}

/**
 * All that one node holds, in the order of what is wanted: the newest version up to the one that is named, else the newest.
 * Copies of this node that nobody wants any more go. null: the node has shown no key, or there is no such credential.
 */
export async function sealFor(
  tx: Db,
  sealing: Sealing,
  { mesh, node, sealKey }: { readonly mesh: string; readonly node: string; readonly sealKey: string | null },
  wanted: ReadonlyArray<CredentialOf & { readonly version?: number }>,
): Promise<Array<SealedSecret | null>> {
  const found = wanted.length === 0 || sealKey === null ? [] : await readCopies(tx, node, sealKey, wanted);
  const byPlace = new Map<number, Copy>();
  const bySubject = new Map<string, Copy>();
  for (const one of found) {
    const { owner, name, version, kept } = one;
    // Wanted twice it is one copy, else the next derivation would give another digest.
    const only = bySubject.get(subjectOf(one, version)) ?? one;
    bySubject.set(subjectOf(one, version), only);
    byPlace.set(one.at, only);
    only.copy ??= await sealing.sealToNode(sealKey ?? '', sealing.open(kept, subjectOf(one, version)), {
      ...{ mesh, node, credential: `${owner}/${name}`, version },
    });
  }
  await writeCopies(tx, node, sealKey, [...bySubject.values()]);
  return wanted.map((_, i): SealedSecret | null => {
    const one = byPlace.get(i + 1);
    return one === undefined ? null : { credential: `${one.owner}/${one.name}`, version: one.version, sealed: one.copy ?? '' };
  });
}

interface Copy extends CredentialOf {
  /** Place among what is wanted, from 1. */
  readonly at: number;
  readonly version: number;
  readonly kept: string;
  copy: string | null;
}

async function readCopies(
  tx: Db,
  node: string,
  sealKey: string,
  wanted: ReadonlyArray<CredentialOf & { readonly version?: number }>,
): Promise<Copy[]> {
  return tx.query(
    `select w.at, w.owner, w.name, c.version, c.sealed as kept, s.sealed as copy
     from unnest($1::text[], $2::text[], $3::int[]) with ordinality w (owner, name, version, at)
     cross join lateral (
       select c.version, c.sealed, c.version <= coalesce(w.version, c.version) as is_within from credential c where c.owner = w.owner and c.name = w.name
       order by is_within desc, case when c.version <= coalesce(w.version, c.version) then -c.version else c.version end limit 1
     ) c
     left join sealed_copy s on s.node = $4 and s.seal_key = $5 and (s.owner, s.name, s.version) = (w.owner, w.name, c.version)
     order by w.at`,
    [...columnsOf(wanted), wanted.map((one) => one.version ?? null), node, sealKey],
  );
}

async function writeCopies(tx: Db, node: string, sealKey: string | null, copies: readonly Copy[]): Promise<void> {
  const columns = [...columnsOf(copies), copies.map((one) => one.version)];
  await tx.query(
    `delete from sealed_copy s where s.node = $4 and (s.seal_key is distinct from $5
       or not exists (select from unnest($1::text[], $2::text[], $3::int[]) w (owner, name, version) where (w.owner, w.name, w.version) = (s.owner, s.name, s.version)))`,
    [...columns, node, sealKey],
  );
  if (copies.length === 0) return;
  await tx.query(
    `insert into sealed_copy (node, owner, name, version, seal_key, sealed)
     select $4, w.owner, w.name, w.version, $5, w.sealed from unnest($1::text[], $2::text[], $3::int[], $6::text[]) w (owner, name, version, sealed)
     on conflict do nothing`,
    [...columns, node, sealKey, copies.map((one) => one.copy)],
  );
}

/** A new version of each secret of these instances. Every node that holds one is to be told; these are given. */
export async function rotateCredentials(tx: Db, sealing: Sealing, owners: readonly string[]): Promise<string[]> {
  // Two at once make two versions, one after the other.
  await tx.query('select from credential where owner = any ($1) order by owner, name, version for no key update', [owners]);
  const next = await tx.query<CredentialOf & { version: number }>(
    `select distinct c.owner, c.name, (select max(version) from credential o where o.owner = c.owner) + 1 as version
     from credential c where c.owner = any ($1)`,
    [owners],
  );
  await insertVersions(tx, sealing, next);
  const holders = await tx.query<{ node: string }>('select distinct node from sealed_copy where owner = any ($1) order by node', [owners]);
  const nodes = holders.map((holder) => holder.node);
  await tx.query('select bump_nodes($1)', [nodes]);
  return nodes;
}

async function insertVersions(tx: Db, sealing: Sealing, made: ReadonlyArray<CredentialOf & { readonly version: number }>): Promise<void> {
  if (made.length === 0) return;
  await tx.query(
    `insert into credential (owner, name, version, sealed) select * from unnest($1::text[], $2::text[], $3::int[], $4::text[]) on conflict do nothing`,
    [...columnsOf(made), made.map((one) => one.version), made.map((one) => sealing.keep(sealing.make(), subjectOf(one, one.version)))],
  );
}

/** Not applied yet: one that the declaration of a node is to name and that its host has not said it holds. */
const APPLIED = `not exists (
  select from placement p where p.node = s.node and p.module in (i.provider, i.consumer) and p.build_id is not null and not p.is_applied)
  and not exists (select from node n where n.name = s.node and n.version <> n.derived_version)`;

/** What no declaration names, once the provider made a newer one and whoever holds that has applied it. */
export async function dropPastVersions(db: Db): Promise<number> {
  const dropped = await db.query(
    `delete from credential c using instance i
     where i.id = c.owner and c.version < i.made_secret_version
       and not exists (select from sealed_copy s where (s.owner, s.name, s.version) = (c.owner, c.name, c.version))
       and not exists (select from sealed_copy s where s.owner = c.owner and s.name = c.name and s.version > c.version and not (${APPLIED}))
     returning c.owner`,
  );
  return dropped.length;
}

/** On the provider's node it is what was made, whatever else of that module fails; elsewhere the consumer is declared and applied. */
const HELD = `(s.node <> i.provider_node or i.made_secret_version >= s.version)
  and not exists (
    select from binding b join placement p on (p.module, p.node) = (b.module, b.node) join node n on n.name = b.node
    where b.instance_id = i.id and b.node = s.node and (p.build_id is null or not p.is_applied or n.version <> n.derived_version))`;

export interface CredentialStatus {
  readonly owner: string;
  readonly name: string;
  /** The newest. */
  readonly version: number;
  readonly madeAt: string;
  /** By node; not applied: it was told or is to be, and has not said that it holds it. */
  readonly holders: ReadonlyArray<{ readonly node: string; readonly version: number; readonly isApplied: boolean }>;
}

export async function credentialHolders(db: Db, owners: readonly string[]): Promise<CredentialStatus[]> {
  return db.query(
    `select c.owner, c.name, c.version, iso(c.made_at) as "madeAt",
       (select coalesce(jsonb_agg(jsonb_build_object('node', s.node, 'version', s.version, 'isApplied', ${HELD}) order by s.node, s.version), '[]')
        from sealed_copy s where s.owner = c.owner and s.name = c.name) as holders
     from credential c join instance i on i.id = c.owner
     where c.owner = any ($1) and c.version = (select max(version) from credential o where o.owner = c.owner and o.name = c.name)
     order by c.owner, c.name`,
    [owners],
  );
}

function columnsOf(some: readonly CredentialOf[]): [string[], string[]] {
  return [some.map((one) => one.owner), some.map((one) => one.name)];
}
