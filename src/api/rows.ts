/** From the inventory's rows to what people read: how urgent, which part of the line matters now, and the verb that helps. */

import type { Iso } from '../domain/facts';
import { short } from '../domain/line';
import { minuteOf, type Times } from '../domain/times';
import type { BuilderStatus, MeshHealth, ModuleStatus, NodeStatus, StuckStatus } from '../inventory';
import type { Neighbours } from '../inventory/asking';
import type { Alarm, BuilderRow, ModuleRow, NodeRow, StuckRow, Urgency } from '../schema/api';

const NONE = { first: [], count: 0 };
/** So long it is said of a module that its newest build came out the same. */
export const CUT_OFF_SHOWN_MS = 3_600_000;

interface Around {
  /** Its neighbours in the graph, where it has any. */
  readonly beside?: Neighbours | undefined;
  /** A node that it is stuck on: there a person looks first. */
  readonly stuckOn?: string | undefined;
  readonly cutOffAt?: string | undefined;
  readonly notReproducible?: boolean;
}

export function moduleRow(status: ModuleStatus, { beside, stuckOn, cutOffAt, notReproducible = false }: Around = {}): ModuleRow {
  const urgency = urgencyOf(status);
  return {
    module: status.module,
    urgency,
    situation: status.situation,
    verdict: status.verdict,
    line: status.line,
    headline: headlineOf(status, urgency),
    reason: status.reason,
    since: status.since,
    remedy: urgency === 'needs you' ? remedyOf(status, stuckOn ?? null) : null,
    head: status.head,
    next: status.next,
    counts: status.counts,
    isHeld: status.isHeld,
    buildsOn: beside?.buildsOn ?? NONE,
    builtOnBy: beside?.builtOnBy ?? NONE,
    // Of a head that failed or is on its way something else is so by now.
    cutOffAt: urgency === 'in step' ? (cutOffAt ?? null) : null,
    notReproducible,
  };
}

function urgencyOf(status: ModuleStatus): Urgency {
  if (status.needsPerson) return 'needs you';
  if (status.inStep && isAboutHead(status)) return 'in step';
  return status.situation === 'held' ? 'held' : 'moving';
}

/** For a moment after git was read, the newest comparison is one of the head before: what was in step then is no answer now. */
function isAboutHead({ head, line }: ModuleStatus): boolean {
  return head === null || line.startsWith(`source ${short(head)}`);
}

/**
 * What is declared, and how the head came to be, say less than what is wrong: where a person is needed the line begins
 * with that. The parts are those of the result line, in its order.
 */
function headlineOf(status: ModuleStatus, urgency: Urgency): string {
  if (status.situation === null) return 'not compared yet';
  if (urgency === 'in step') return status.line;
  if (status.situation === 'held') return status.reason;
  if (urgency === 'moving') return shortened(status.line);
  const parts = status.line.split(' · ').filter((part) => !/^on no node$|^declared on |^applied on /.test(part));
  switch (status.situation) {
    case 'failed':
      return parts.filter((part) => !part.startsWith('source ') || part.includes('(')).join(' · ');
    case 'invalid':
    case 'unreadable':
      return parts.join(' · ');
    case 'waiting':
      return parts.find((part) => part.startsWith('waiting for ')) ?? `waiting: ${status.reason}${sinceOf(status)}`;
    default:
      return `${status.situation}: ${status.reason}${sinceOf(status)}`;
  }
}

function sinceOf({ since }: ModuleStatus): string {
  return since === null ? '' : ` · since ${minuteOf(since)}`;
}

/** For one row of a table: what agrees is said once. */
function shortened(line: string): string {
  return line
    .replace(/^source (\w+) · built from \1 · (fit[^·]*?)(?= · |$)/, '$1 $2')
    .replace(/declared on (\d+) · applied on \1(?![\d,])/, 'applied on $1')
    .replace(/declared on (\d+) · applied on (\d+)/, 'applied on $2 of $1');
}

function remedyOf(status: ModuleStatus, stuckOn: string | null): string {
  const { module } = status;
  switch (status.situation) {
    case 'stuck':
      return stuckOn === null ? `tally why ${module}` : `tally node show ${stuckOn}`;
    case 'failed':
    case 'suspect':
      return `tally log ${module}`;
    case 'asking':
      return `tally declare ${module} --why "…"`;
    case 'unreadable':
      return `tally module show ${module}`;
    case 'cycle':
      return `tally graph ${module}`;
    default:
      return `tally why ${module}`;
  }
}

export function stuckRow(status: StuckStatus): StuckRow {
  const resources = status.resources.join(', ');
  const of = resources.includes(status.module) ? '' : ` of ${status.module}`;
  const reports = status.count === 1 ? '1 report' : `${status.count} reports`;
  return {
    ...status,
    resources: [...status.resources],
    headline: `stuck: ${resources}${of}, ${reports} since ${minuteOf(status.since)} · ${status.message}`,
    remedy: `tally node show ${status.node}`,
  };
}

export function nodeRow(status: NodeStatus): NodeRow {
  const { node, site, presence, lastBeatAt, sending, placements, applied } = status;
  return { node, site, presence, lastBeatAt, sending, trouble: troubleOf(status), placements, applied };
}

function troubleOf(status: NodeStatus): NodeRow['trouble'] {
  const show = `tally node show ${status.node}`;
  if (status.keyRefused !== null)
    return {
      reason: 'refused: it came with another key than the one first seen; trust that where its host was installed anew, else renew its account',
      since: null,
      remedy: `tally node trust ${status.node}`,
    };
  if (status.refused !== null) return { reason: `refused its declaration: ${status.refused.reason}`, since: status.refused.since, remedy: show };
  if (status.notWorkedOut !== null)
    return { reason: `not worked out: ${status.notWorkedOut.reason}`, since: status.notWorkedOut.since, remedy: 'tally plan' };
  if (status.sendTrouble !== null)
    return { reason: `cannot be sent: ${status.sendTrouble.reason}`, since: status.sendTrouble.since, remedy: 'tally doctor' };
  return null;
}

export function builderRow(status: BuilderStatus): BuilderRow {
  return { ...status, platforms: [...status.platforms], busy: status.busy.map((one) => ({ ...one })) };
}

const DEAD_LETTER_SHOWN_MS = 3_600_000;
/** A pass that died with its process is missed for a while, and the next one reads. */
const READ_LATE_MS = 60_000;

/** Nobody asks the source that is due longest, though whoever reads leases it for as long as it is being asked. */
export function isReadLate(dueSince: Iso, now: Date, { readRefs }: Times): boolean {
  return now.getTime() - Date.parse(dueSince) > Math.max(2 * readRefs, READ_LATE_MS);
}

/** What is wrong with the mesh itself. */
export function alarmsOf(health: MeshHealth, now: Date, times: Times): Alarm[] {
  const alarms: Alarm[] = [];
  const { oldestOwedSince, oldestDueSince } = health;
  if (oldestDueSince !== null && isReadLate(oldestDueSince, now, times)) {
    alarms.push({
      what: `sources are not read, that of ${health.oldestDueModule ?? 'one'} the longest: is Temporal up?`,
      since: oldestDueSince,
      remedy: 'tally doctor',
    });
  }
  if (oldestOwedSince !== null && now.getTime() - Date.parse(oldestOwedSince) > 2 * times.sweep) {
    alarms.push({
      what: `${health.uncompared} modules wait to be compared, ${health.oldestOwedModule ?? 'one'} the longest: is Temporal up?`,
      since: oldestOwedSince,
      remedy: 'tally doctor',
    });
  }
  const { newestDeadLetter } = health;
  // Nobody can take a dead letter back, so an old one is the doctor's to show.
  if (newestDeadLetter !== null && now.getTime() - Date.parse(newestDeadLetter.at) < DEAD_LETTER_SHOWN_MS) {
    alarms.push({
      what: `${health.deadLetters} messages could not be read; the newest from ${newestDeadLetter.queue}: ${newestDeadLetter.reason}`,
      since: newestDeadLetter.at,
      remedy: 'tally doctor',
    });
  }
  return alarms;
}
