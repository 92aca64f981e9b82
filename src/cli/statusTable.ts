/** `tally status`: one glance, most urgent first, each line that needs a person with the verb that helps. */
import type { ModuleRow, StatusAnswer, Urgency } from '../schema/api';
import { clock, colours, cut, laid, lasted, padded, plain } from './text';

interface Line {
  readonly name: string;
  readonly says: string;
  readonly remedy: string | null;
}

const LEAST_NAME = 9;
const MOST_NAME = 24;
/** More are counted: a table of thousands is no glance. */
const MOST_LINES = 50;
const MOST_IN_STEP_LINES = 8;
const IN_STEP = 'IN STEP';
/** Its newest build came out as the one before, a moment ago. */
const CUT_OFF = ' (came out the same)';

export function statusTable(status: StatusAnswer, width: number): string[] {
  const of = (urgency: Urgency): Line[] => status.modules.filter((row) => row.urgency === urgency).map((row) => moduleLine(row, status.now));
  const urgent = [...needsYou(status)];
  const moving = of('moving');
  const held = of('held');
  const settled = status.modules
    .filter((row) => row.urgency === 'in step')
    .map((row) => `${plain(row.module)}${row.cutOffAt === null ? '' : CUT_OFF}`);
  const names = [...urgent, ...moving, ...held].map((line) => plain(line.name).length);
  const nameWidth = Math.min(MOST_NAME, Math.max(LEAST_NAME, ...names));
  return [
    cut(plain(heading(status)), width),
    ...(status.modules.length === 0 ? ['', 'No module is tracked yet: tally module add NAME REPOSITORY'] : []),
    ...(status.modules.length > 0 || urgent.length > 0 ? [''] : []),
    ...section(colours.bold(colours.red('NEEDS YOU')), urgent, nameWidth, width),
    ...section(colours.bold(colours.yellow('MOVING')), moving, nameWidth, width),
    ...section(colours.bold('HELD'), held, nameWidth, width),
    ...inStep(settled, nameWidth, width),
  ];
}

function heading({ summary, nodes }: StatusAnswer): string {
  const unseen = nodes.filter((node) => node.presence === 'never seen').length;
  const since = summary.awaySince === null ? '' : ` since ${clock(summary.awaySince)}`;
  const parts = [
    `mesh ${summary.mesh}`,
    `${counted(summary.modules, 'module')}, ${summary.inStep} in step`,
    `${counted(summary.nodes, 'node')}${summary.away > 0 ? `, ${summary.away} away${since}` : ''}${unseen > 0 ? `, ${unseen} never seen` : ''}`,
  ];
  if (summary.notWorkedOut > 0) parts.push(`${summary.notWorkedOut} not worked out`);
  return parts.join(' · ');
}

function needsYou(status: StatusAnswer): Line[] {
  const mesh = status.alarms.map((alarm) => ({ name: 'mesh', says: alarm.what, remedy: alarm.remedy }));
  const stuck = status.stuck.map((row) => ({ name: row.node, says: row.headline, remedy: row.remedy }));
  // A module that is stuck on nodes is told by them: the node is where a person looks.
  const told = new Set(status.stuck.map((row) => row.module));
  const modules = status.modules
    .filter((row) => row.urgency === 'needs you' && !(row.situation === 'stuck' && told.has(row.module)))
    .map((row) => moduleLine(row, status.now));
  const nodes = status.nodes.flatMap(({ node, trouble }) =>
    trouble === null
      ? []
      : [{ name: node, says: `${trouble.reason}${trouble.since === null ? '' : ` · since ${clock(trouble.since)}`}`, remedy: trouble.remedy }],
  );
  return [...mesh, ...modules, ...stuck, ...nodes];
}

function moduleLine(row: ModuleRow, now: string): Line {
  return { name: row.module, says: live(row, now), remedy: row.remedy };
}

/** What runs on a builder is said by how long it has been running. */
function live(row: ModuleRow, now: string): string {
  const { since, headline } = row;
  if (since === null || row.urgency !== 'moving') return headline;
  return headline.replace(/((?:building|inspecting) on \S+) since \S+Z/, (_, what: string) => `${what} for ${lasted(since, now)}`);
}

function section(title: string, lines: readonly Line[], nameWidth: number, width: number): string[] {
  if (lines.length === 0) return [];
  const indent = 2 + nameWidth + 2;
  const shown = lines.slice(0, MOST_LINES).flatMap((line) => {
    // What needs a person is worth a second line; what moves will say something else in a moment.
    const [first = '', ...rest] = laid(line.says, width - indent, line.remedy === null ? 1 : 2);
    return [
      `  ${padded(cut(plain(line.name), nameWidth), nameWidth)}  ${first}`,
      ...rest.map((text) => `${' '.repeat(indent)}${text}`),
      ...(line.remedy === null ? [] : [`${' '.repeat(indent)}${colours.cyan(`→ ${cut(plain(line.remedy), width - indent - 2)}`)}`]),
    ];
  });
  const rest = lines.length - MOST_LINES;
  return [title, ...shown, ...(rest > 0 ? [`  and ${rest} more: tally status --json has them all`] : [])];
}

/** Names side by side, under one another where one line does not hold them. */
function inStep(names: readonly string[], nameWidth: number, width: number): string[] {
  if (names.length === 0) return [];
  const indent = 2 + nameWidth + 2;
  const lines: string[] = [];
  let line = '';
  let shown = 0;
  for (const name of names) {
    const longer = line === '' ? name : `${line} · ${name}`;
    if (longer.length <= width - indent || line === '') {
      line = longer;
    } else {
      lines.push(line);
      line = name;
    }
    if (lines.length === MOST_IN_STEP_LINES) break;
    shown += 1;
  }
  if (lines.length < MOST_IN_STEP_LINES) lines.push(line);
  else lines.push(`and ${names.length - shown} more`);
  const title = `${colours.bold(colours.green(IN_STEP))}${' '.repeat(indent - IN_STEP.length)}`;
  return lines.map((one, at) => `${at === 0 ? title : ' '.repeat(indent)}${cut(one, width - indent)}`);
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
