/** `tally plan` for a terminal: each step with its reason; of a large mesh a line for many. */
import type { PlanAnswer, PlanStep } from '../schema/graphApi';
import { short } from './shown';
import { clock, colours, table, wrapped } from './text';

/** More steps are told by the level; `--all` tells each. */
const MOST_STEPS = 30;
const MOST_NODES = 30;
const MOST_NAMED = 3;

export function planLines(plan: PlanAnswer, width: number, all: boolean): string[] {
  if (plan.steps.length + plan.nodes.length + plan.standing.length === 0) return ['nothing is to be done: source, built, declared and applied agree'];
  const isShort = !all && plan.steps.length > MOST_STEPS;
  const nodes = all ? plan.nodes : plan.nodes.slice(0, MOST_NODES);
  const rest = plan.nodes.length - nodes.length;
  return [
    ...(isShort ? levelLines(plan.steps, width) : stepLines(plan.steps, width)),
    ...(isShort
      ? ['', `${plan.steps.length} steps: tally plan --all${plan.supposed === null ? '' : ` --if ${plan.supposed}`} tells each with its reason`]
      : []),
    ...plan.cycles.flatMap((cycle) => wrapped(`cycle: ${cycle.join(' → ')}: none of them is built (tally why ${cycle[0] ?? ''})`, width)),
    ...(nodes.length === 0
      ? []
      : [
          '',
          colours.bold('NODES THAT ARE BEHIND'),
          ...table(
            nodes.map((node) => [node.node, `${node.state}${node.since === null ? '' : ` since ${clock(node.since)}`}`, node.reason]),
            width,
            2,
          ),
        ]),
    ...(rest > 0 ? [`  and ${rest} more: tally plan --all`] : []),
    ...standingLines(plan, width),
  ];
}

/** Without these a plan of nothing would say that all agrees. */
function standingLines({ steps, nodes, standing }: PlanAnswer, width: number): string[] {
  if (standing.length === 0) return [];
  const named = standing.slice(0, MOST_NAMED).map(({ module, situation }) => `${module} (${situation})`);
  const more = standing.length > MOST_NAMED ? ` and ${standing.length - MOST_NAMED} more` : '';
  const begin = steps.length + nodes.length === 0 ? 'nothing is to be done by itself' : 'not by itself';
  return wrapped(`${begin}: ${named.join(', ')}${more} → tally status`, width);
}

function stepLines(steps: readonly PlanStep[], width: number): string[] {
  const rows = table(
    steps.map((step) => [numberOf(step), step.what, step.module, step.commit === null ? '' : short(step.commit), where(step)]),
    width,
  );
  return rows.flatMap((row, at) => {
    const step = steps[at];
    return step === undefined ? [row] : [row, ...wrapped(reasonOf(step), width - 3).map((line) => `   ${colours.dim(line)}`)];
  });
}

function reasonOf(step: PlanStep): string {
  const after = step.after.length === 0 ? '' : `; after ${some(step.after)}`;
  const unless =
    step.unless.length === 0 ? '' : `; may be cut off if ${listed(step.unless)} ${step.unless.length === 1 ? 'comes' : 'come'} out the same`;
  return `because ${step.because}${after}${unless}`;
}

/** One line for what is done at the same time. */
function levelLines(steps: readonly PlanStep[], width: number): string[] {
  const groups = new Map<string, PlanStep[]>();
  for (const step of steps) {
    const key = `${step.level} ${step.what} ${step.unless.length === 0}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [step]);
    else group.push(step);
  }
  const rows = [...groups.values()].map((group) => {
    const [first] = group;
    const nodes = new Set(group.flatMap((step) => step.nodes)).size;
    const causes = [...new Set(group.flatMap((step) => step.unless))];
    return [
      first === undefined ? '' : numberOf(first),
      first?.what ?? '',
      `${group.length} ${group.length === 1 ? 'module' : 'modules'}`,
      nodes === 0 ? 'on no node' : `on ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`,
      `${some(group.map((step) => step.module))}${causes.length === 0 ? '' : `; unless ${some(causes)} ${causes.length === 1 ? 'comes' : 'come'} out the same`}`,
    ];
  });
  const rest = rows.length - MOST_STEPS;
  return [...table(rows.slice(0, MOST_STEPS), width), ...(rest > 0 ? [`and ${rest} more lines like these`] : [])];
}

function numberOf(step: PlanStep): string {
  return step.level === 0 ? '·' : String(step.level);
}

function some(names: readonly string[]): string {
  const shown = names.length <= MOST_NAMED + 1 ? names : names.slice(0, MOST_NAMED);
  const rest = names.length - shown.length;
  return `${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`;
}

function where({ what, nodes, afterwards }: PlanStep): string {
  const on = some(nodes);
  switch (what) {
    case 'inspect':
    case 'build':
    case 'judge':
      if (nodes.length === 0) return 'on no node';
      if (afterwards === 'ask') return `then on ${on}, when a person says so`;
      return afterwards === 'held' ? `held on ${on}` : `then on ${on}`;
    case 'ask':
      return `on ${on}, when a person says so`;
    case 'send':
      return `waits for ${on}`;
    default:
      return nodes.length === 0 ? '' : `on ${on}`;
  }
}
