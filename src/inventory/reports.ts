import { foldLate, foldReport, type Outcome, type Run } from '../domain/stuck';
import type { NodeReport } from '../schema/messages';
import type { Db } from './db';
import { beginEpochs } from './epochs';
import { settleParts } from './instances';
import { toJson } from './text';

/** Reports that are kept of a node at the least; one that comes later than these is too late to count. */
const KEPT = 20;

interface NodeRow {
  readonly node: string;
  readonly epoch: string | null;
  readonly pastEpochs: readonly string[];
  readonly lastNumber: number;
}

/** A placement as the reports change it. */
interface Placed {
  readonly module: string;
  readonly node: string;
  readonly build: string | null;
  readonly wantBuild: string | null;
  readonly wantDigest: string | null;
  readonly wantSequence: number | null;
  readonly isApplied: boolean;
  appliedBuild: string | null;
  appliedDigest: string | null;
  appliedSequence: number | null;
  run: Run | null;
}

type ModuleReport = NodeReport['modules'][number];

/** What is wrong when a declaration is refused whole. */
const REFUSAL = 'declaration';

/** One transaction for the batch. Each report counts once, in the order of its number. The modules whose facts moved. */
export async function recordReports(db: Db, reports: readonly NodeReport[], now: Date): Promise<string[]> {
  if (reports.length === 0) return [];
  return db.transaction(async (tx) => {
    const nodes = await lockAndBegin(tx, reports, now);
    const fresh = await keepReports(
      tx,
      reports.filter((report) => isCountable(report, nodes.get(report.node))),
      now,
    );
    const current = fresh.filter((report) => report.epoch === nodes.get(report.node)?.epoch).sort((a, b) => a.number - b.number);
    if (current.length === 0) return [];
    const late = current.filter((report) => report.number < (nodes.get(report.node)?.lastNumber ?? 0));
    const onTime = current.filter((report) => !late.includes(report));
    const placed = await readPlacements(tx, [...new Set(current.map((report) => report.node))]);
    const before = new Map(placed.map((placement) => [placement, JSON.stringify(placement)]));
    const byNode = groupByNode(placed);
    if (late.length > 0) foldLateOnes(late, await readKept(tx, late), byNode, now);
    for (const report of onTime) for (const placement of byNode.get(report.node) ?? []) take(placement, report, now);
    await nameBuilds(tx, placed, current);
    const changed = placed.filter((placement) => before.get(placement) !== JSON.stringify(placement));
    const modules = await writePlacements(tx, changed, now);
    await settleParts(tx, onTime);
    await writeNodes(tx, onTime, now);
    return modules;
  });
}

/** The nodes' rows, locked; an epoch that nobody has seen yet begins. */
async function lockAndBegin(tx: Db, reports: readonly NodeReport[], now: Date): Promise<Map<string, NodeRow>> {
  const read = async (): Promise<Map<string, NodeRow>> => {
    const rows = await tx.query<NodeRow>(
      `select name as node, epoch, past_epochs as "pastEpochs", last_number as "lastNumber" from node where name = any ($1) order by name for no key update`,
      [[...new Set(reports.map((report) => report.node))]],
    );
    return new Map(rows.map((row) => [row.node, row]));
  };
  const nodes = await read();
  const begun = new Map<string, string>();
  for (const { node, epoch } of reports) {
    const row = nodes.get(node);
    if (row !== undefined && row.epoch !== epoch && !row.pastEpochs.includes(epoch)) begun.set(node, epoch);
  }
  if (begun.size === 0) return nodes;
  await beginEpochs(
    tx,
    [...begun].map(([node, epoch]) => ({ node, epoch })),
    now,
  );
  return read();
}

/** So late that it may have been kept and dropped already, it does not count. */
function isCountable(report: NodeReport, node: NodeRow | undefined): boolean {
  return node !== undefined && (report.epoch !== node.epoch || report.number > node.lastNumber - KEPT);
}

/** Gives those that had not been taken in before. */
async function keepReports(tx: Db, reports: readonly NodeReport[], now: Date): Promise<NodeReport[]> {
  if (reports.length === 0) return [];
  const kept = await tx.query<{ node: string; epoch: string; number: number }>(
    `insert into report (node, epoch, number, received_at, body)
     select body ->> 'node', body ->> 'epoch', (body ->> 'number')::bigint, $2, body from jsonb_array_elements($1::jsonb) body
     on conflict do nothing returning node, epoch, number`,
    [toJson(reports), now],
  );
  const byKey = new Map(reports.map((report) => [keyOf(report), report]));
  return kept.flatMap((row) => byKey.get(keyOf(row)) ?? []);
}

function keyOf({ node, epoch, number }: { node: string; epoch: string; number: number }): string {
  return `${node} ${number} ${epoch}`;
}

async function readPlacements(tx: Db, nodes: readonly string[]): Promise<Placed[]> {
  return tx.query(
    `select module, node, build_id as build, want_build as "wantBuild", want_digest as "wantDigest", want_sequence as "wantSequence", is_applied as "isApplied",
       applied_build as "appliedBuild", applied_digest as "appliedDigest", applied_sequence as "appliedSequence",
       case when failing_resources is not null then jsonb_build_object('resources', failing_resources, 'count', failing_count, 'since', iso(failing_since), 'message', failing_message) end as run
     from placement where node = any ($1) order by module, node`,
    [nodes],
  );
}

/** What a report says of a module here; null: nothing. */
function outcomeOf(placement: Placed, report: NodeReport, at: Date): { readonly outcome: Outcome; readonly held: ModuleReport | null } | null {
  const base = { number: report.number, at: at.toISOString() };
  if (report.refused !== null && placement.build !== null && !placement.isApplied) {
    return { outcome: { ...base, failures: [{ resource: REFUSAL, message: `refused: ${report.refused.reason}` }] }, held: null };
  }
  const said = report.modules.find((one) => one.module === placement.module);
  if (said === undefined) return null;
  if (said.state === 'held') return { outcome: { ...base, failures: [] }, held: said };
  const failures = said.failures.length > 0 ? said.failures : [{ resource: REFUSAL, message: 'failed without saying at what' }];
  return { outcome: { ...base, failures }, held: null };
}

function take(placement: Placed, report: NodeReport, now: Date): void {
  const said = outcomeOf(placement, report, now);
  if (said === null) return;
  // That the declaration before still holds says nothing about the one that was refused.
  const isAboutBefore = (report.declaration?.sequence ?? 0) < (placement.wantSequence ?? 0);
  if (said.held === null || !isAboutBefore || placement.run?.resources[0] !== REFUSAL) placement.run = foldReport(placement.run, said.outcome);
  if (said.held !== null) hold(placement, report, said.held);
}

function hold(placement: Placed, report: NodeReport, held: ModuleReport): void {
  const isSame = placement.appliedDigest === held.digest;
  placement.appliedSequence = report.declaration?.sequence ?? (isSame ? placement.appliedSequence : null);
  if (isSame) return;
  placement.appliedDigest = held.digest;
  placement.appliedBuild = held.digest === placement.wantDigest ? placement.wantBuild : null;
}

interface Kept {
  readonly report: NodeReport;
  readonly receivedAt: Date;
}

/** The kept reports of the nodes that something came late from; the late ones are among them. */
async function readKept(tx: Db, late: readonly NodeReport[]): Promise<Map<string, Kept[]>> {
  const rows = await tx.query<Kept & { node: string }>(
    `select r.node, r.body as report, r.received_at as "receivedAt" from report r join node n on n.name = r.node and n.epoch = r.epoch
     where r.node = any ($1) and r.number <= n.last_number order by r.number`,
    [[...new Set(late.map((report) => report.node))]],
  );
  return groupByNode(rows);
}

/** Puts late reports in their places among the kept ones; what a newer one said of a module stands. */
function foldLateOnes(late: readonly NodeReport[], kept: ReadonlyMap<string, Kept[]>, byNode: ReadonlyMap<string, Placed[]>, now: Date): void {
  const isLate = new Set(late.map(keyOf));
  for (const [node, all] of kept) {
    for (const placement of byNode.get(node) ?? []) {
      const said = all.flatMap(({ report, receivedAt }) => {
        const found = outcomeOf(placement, report, isLate.has(keyOf(report)) ? now : receivedAt);
        return found === null ? [] : [{ report, ...found }];
      });
      const lateOnes = said.filter((one) => isLate.has(keyOf(one.report)));
      if (lateOnes.length === 0) continue;
      const outcomes = (some: typeof said): Outcome[] => some.map((one) => one.outcome);
      placement.run = foldLate(placement.run, outcomes(said.filter((one) => !lateOnes.includes(one))), outcomes(lateOnes));
      const newest = said.findLast((one) => one.held !== null);
      if (newest?.held != null && lateOnes.includes(newest)) hold(placement, newest.report, newest.held);
    }
  }
}

/** What is held and is not what is wanted now comes from an earlier declaration: which build, that one says. */
async function nameBuilds(tx: Db, placed: readonly Placed[], reports: readonly NodeReport[]): Promise<void> {
  const unnamed = placed.filter(
    (placement) => placement.appliedDigest !== null && placement.appliedBuild === null && placement.appliedSequence !== null,
  );
  const touched = new Set(reports.map((report) => report.node));
  const asked = unnamed.filter((placement) => touched.has(placement.node));
  if (asked.length === 0) return;
  const rows = await tx.query<{ module: string; node: string; build: string | null }>(
    `select a.module, a.node, d.content #>> array['builds', a.module, 'build'] as build
     from unnest($1::text[], $2::text[], $3::bigint[]) a (module, node, sequence)
     join declaration d on d.node = a.node and d.sequence = a.sequence`,
    [asked.map((one) => one.module), asked.map((one) => one.node), asked.map((one) => one.appliedSequence)],
  );
  const builds = new Map(rows.map((row) => [`${row.node} ${row.module}`, row.build]));
  for (const placement of asked) placement.appliedBuild = builds.get(`${placement.node} ${placement.module}`) ?? null;
}

function groupByNode<Row extends { readonly node: string }>(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) groups.set(row.node, [...(groups.get(row.node) ?? []), row]);
  return groups;
}

async function writePlacements(tx: Db, changed: readonly Placed[], now: Date): Promise<string[]> {
  if (changed.length === 0) return [];
  const rows = await tx.query<{ module: string }>(
    `with written as (
       update placement p set
         applied_build = w."appliedBuild", applied_digest = w."appliedDigest", applied_sequence = w."appliedSequence",
         applied_at = case when p.applied_digest is distinct from w."appliedDigest" then $2 else p.applied_at end,
         failing_resources = case when w.run is not null then array(select jsonb_array_elements_text(w.run -> 'resources')) end,
         failing_count = coalesce((w.run ->> 'count')::int, 0),
         failing_since = (w.run ->> 'since')::timestamptz,
         failing_message = w.run ->> 'message'
       from jsonb_to_recordset($1::jsonb) w (module text, node text, "appliedBuild" text, "appliedDigest" text, "appliedSequence" bigint, run jsonb)
       where p.module = w.module and p.node = w.node
       returning p.module
     )
     select distinct module from written order by module`,
    [toJson(changed), now],
  );
  return rows.map((row) => row.module);
}

/** What the newest report of each node says of the node itself; and reports that are older than the kept ones go. */
async function writeNodes(tx: Db, onTime: readonly NodeReport[], now: Date): Promise<void> {
  const newest = [...new Map(onTime.map((report) => [report.node, report])).values()];
  if (newest.length === 0) return;
  await tx.query(
    `update node n set
       last_number = s.number,
       applied_sequence = coalesce(s.sequence, n.applied_sequence),
       applied_digest = coalesce(s.digest, n.applied_digest),
       received_sequence = greatest(n.received_sequence, s.sequence),
       received_digest = case when s.sequence > n.received_sequence then s.digest else n.received_digest end,
       refused_sequence = case when s.refusal is not null then s.refused when s.clears then null else n.refused_sequence end,
       refused_reason = case when s.refusal is not null then s.refusal when s.clears then null else n.refused_reason end,
       refused_since = case when s.refusal is not null and n.refused_reason is distinct from s.refusal then $2 when s.refusal is null and s.clears then null else n.refused_since end
     from (
       select r.*, k.refused_reason is not null and r.sequence >= coalesce(k.refused_sequence, k.sent_sequence, 0) as clears
       from unnest($1::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[]) r (node, number, sequence, digest, refused, refusal)
       join node k on k.name = r.node
     ) s
     where n.name = s.node`,
    [
      newest.map((report) => report.node),
      now,
      newest.map((report) => report.number),
      newest.map((report) => report.declaration?.sequence ?? null),
      newest.map((report) => report.declaration?.digest ?? null),
      newest.map((report) => report.refused?.sequence ?? null),
      newest.map((report) => report.refused?.reason ?? null),
    ],
  );
  const full = newest.filter((report) => report.number % KEPT === 0);
  if (full.length === 0) return;
  await tx.query(
    'delete from report r using unnest($1::text[], $2::text[], $3::bigint[]) n (node, epoch, number) where r.node = n.node and (r.epoch <> n.epoch or r.number <= n.number - $4)',
    [full.map((report) => report.node), full.map((report) => report.epoch), full.map((report) => report.number), KEPT],
  );
}
