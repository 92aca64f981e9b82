/** One module or one node in full, as `status NAME` and `show NAME` print it. */
import type { BuildRow, ModuleAnswer, NodeAnswer, PlacementRow } from '../schema/api';
import type { GraphEdge, ModuleGraph } from '../schema/graphApi';
import type { Wiring } from '../schema/wiringApi';
import { clock, colours, listed, plain, table, wrapped } from './text';

export function moduleLines(answer: ModuleAnswer, width: number): string[] {
  const { row, declare, hold } = answer;
  const facts: string[][] = [
    ['source', `${answer.ref} of ${answer.repository}${answer.readAt === null ? '' : `, read ${clock(answer.readAt)}`}`],
    ['declare', `${declare.policy}, said by ${declare.from === 'manifest' ? 'its manifest' : 'the mesh'}`],
  ];
  if (hold !== null) facts.push(['held', `by ${hold.by} since ${clock(hold.at)}: ${hold.why}`]);
  if (answer.temporalUrl !== null) facts.push(['run', answer.temporalUrl]);
  return [
    ...wrapped(`${row.module}  ${row.line}`, width),
    ...wrapped(row.reason.startsWith(row.situation ?? ' ') ? row.reason : `${row.situation ?? 'not compared yet'}: ${row.reason}`, width),
    ...(row.cutOffAt === null ? [] : wrapped(`cut off: its newest build came out the same, at ${clock(row.cutOffAt)}`, width)),
    ...(row.remedy === null ? [] : [colours.cyan(`→ ${row.remedy}`)]),
    '',
    ...table(facts, width),
    ...titled(
      'problems',
      answer.problems.flatMap((problem) => wrapped(problem, width - 2).map((line) => `  ${line}`)),
    ),
    ...titled(
      'notes',
      answer.notes.flatMap((note) => wrapped(note, width - 2).map((line) => `  ${line}`)),
    ),
    ...graphSections(answer.graph, width),
    ...titled(
      'nodes',
      placementLines(answer.placements, (placement) => placement.node, width),
    ),
    ...wiringLines(answer.wiring, (one) => one.node, width),
    ...titled('builds, newest first', table(answer.builds.map(buildCells), width, 2)),
    ...titled(
      'decisions, newest first',
      table(
        answer.intents.map((intent) => [clock(intent.at), intent.verb, intent.node ?? '', intent.who, intent.why]),
        width,
        2,
      ),
    ),
  ];
}

const MOST_EDGES = 20;
const EXPORT_WORDS = { carried: '', kept: ', until the head is fit', awaited: ', once the head is fit' } as const;

/** What its code exports, what it builds on, what builds on it, and what of its imports cannot be known. */
function graphSections({ exports, inputs, dependants, cycle, outside, unknown }: ModuleGraph, width: number): string[] {
  const outsideWords = `  and ${outside} ${outside === 1 ? 'import' : 'imports'} that no module exports`;
  return [
    ...titled(
      'exports',
      table(
        exports.map((one) => [one.language, one.name, `as ${one.artifact}`, `${one.file}:${one.line}${EXPORT_WORDS[one.state]}`]),
        width,
        2,
      ),
    ),
    ...titled('builds on', [...edgeLines(inputs, (edge) => edge.input, width), ...(outside === 0 || inputs.length === 0 ? [] : [outsideWords])]),
    ...titled(
      'built on by',
      edgeLines(dependants, (edge) => edge.module, width),
    ),
    ...titled(
      'cycle',
      cycle === null
        ? []
        : wrapped(`${cycle.join(' → ')}: no change is built until one of these imports is gone`, width - 2).map((line) => `  ${line}`),
    ),
    ...titled(
      'not known',
      unknown.flatMap((one) =>
        wrapped(`${one.file}:${one.line} ${one.reason}${one.kind === 'unparsed' ? ': the edges of before stay in force' : ''}`, width - 2).map(
          (line) => `  ${line}`,
        ),
      ),
    ),
  ];
}

function edgeLines(edges: readonly GraphEdge[], nameOf: (edge: GraphEdge) => string, width: number): string[] {
  const rows = edges.slice(0, MOST_EDGES).map((edge) => {
    const [first] = edge.evidence;
    const more = edge.names > 1 ? ` and ${edge.names - 1} more` : '';
    return [nameOf(edge), `${first?.file ?? ''}:${first?.line ?? 0}`, `${first?.name ?? ''}${more}${edge.isTest ? ' · tests only' : ''}`];
  });
  const rest = edges.length - MOST_EDGES;
  return [...table(rows, width, 2), ...(rest > 0 ? [`  and ${rest} more: tally graph`] : [])];
}

export function nodeLines(answer: NodeAnswer, width: number): string[] {
  const { row } = answer;
  const seen = row.lastBeatAt === null ? '' : `, last beat ${clock(row.lastBeatAt)}`;
  const held = (name: string, what: { sequence: number; digest: string | null } | null): string[] => [
    name,
    what === null ? 'nothing yet' : `sequence ${what.sequence}${what.digest === null ? '' : `, ${what.digest.slice(0, 19)}`}`,
  ];
  const facts: string[][] = [
    ['site', row.site],
    ['sending', row.sending],
    held('sent', answer.sent),
    held('received', answer.received),
    held('applied', answer.applied),
    ['host', answer.hostVersion === null ? 'not seen yet' : `${answer.hostVersion}, reads ${answer.shapes.join(', ')}`],
    ...(answer.epochs > 1
      ? [['installed', `${answer.epochs} times, the last ${answer.epochSince === null ? 'not known when' : clock(answer.epochSince)}`]]
      : []),
    ['key', answer.publicKey === null ? 'taken from its first beat' : `${answer.publicKey.replace(/-----[^-]+-----|\s/g, '')}`],
    ['seal key', answer.sealKey ?? 'none shown: no secret can be sealed to it'],
    ...Object.entries(answer.facts).map(([key, value]) => [`fact ${key}`, value]),
  ];
  return [
    `${row.node}  ${row.presence}${seen} · ${row.placements === 0 ? 'no modules' : `${row.applied} of ${row.placements} ${row.placements === 1 ? 'module' : 'modules'} applied`}`,
    ...(row.trouble === null ? [] : [...wrapped(row.trouble.reason, width), colours.cyan(`→ ${plain(row.trouble.remedy)}`)]),
    '',
    ...table(facts, width),
    ...titled(
      'modules',
      placementLines(answer.placements, (placement) => placement.module, width),
    ),
    ...wiringLines(answer.wiring, (one) => one.module, width),
    ...titled(
      'reports, newest first',
      table(
        answer.reports.map((report) => [
          clock(report.receivedAt),
          `number ${report.number}`,
          report.refused ?? (report.failures.length === 0 ? `all held, ${report.changes} changed` : `failed ${report.failures.join(', ')}`),
        ]),
        width,
        2,
      ),
    ),
  ];
}

function titled(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', colours.bold(title), ...lines];
}

function placementLines(placements: readonly PlacementRow[], nameOf: (placement: PlacementRow) => string, width: number): string[] {
  const lines = table(
    placements.map((placement) => [
      nameOf(placement),
      placement.declared === null ? '-' : short(placement.declared.commit),
      placementWords(placement),
    ]),
    width,
    2,
  );
  return lines.flatMap((line, at) => {
    const failing = placements[at]?.failing;
    if (failing == null) return [line];
    const since = failing.since === null ? '' : ` since ${clock(failing.since)}`;
    const said = `${failing.count} ${failing.count === 1 ? 'report' : 'reports'}${since} failed on ${failing.resources.join(', ')}: ${failing.message}`;
    return [line, ...wrapped(said, width - 4).map((text) => `    ${text}`)];
  });
}

/** @param nameOf what tells the lines apart: the node of a module's, the module of a node's. */
function wiringLines(
  { claims, offers, bindings }: Wiring,
  nameOf: (one: { readonly module: string; readonly node: string }) => string,
  width: number,
): string[] {
  const bound = bindings.map((one) => [
    nameOf(one),
    one.name === one.wants ? one.wants : `${one.wants} as ${one.name}`,
    [
      `${one.provider} on ${one.providerNode}`,
      ...(one.instance === null ? [] : [`${one.instance}${one.isMade ? '' : ' outstanding'}`]),
      ...(one.chosenBy === null ? [] : [`chosen by ${one.chosenBy}`]),
    ].join(' · '),
  ]);
  return [
    ...titled('requires', listed(bound, width, 2)),
    ...titled(
      'provides',
      table(
        offers.map((one) => [nameOf(one), one.name, `within the ${one.scope}`]),
        width,
        2,
      ),
    ),
    ...titled(
      'claims',
      table(
        claims.map((one) => [nameOf(one), one.resource, `one in the ${one.scope}`]),
        width,
        2,
      ),
    ),
  ];
}

function placementWords(placement: PlacementRow): string {
  if (placement.declared === null) return 'nothing declared yet';
  if (placement.isApplied) return `applied${placement.applied?.at == null ? '' : ` since ${clock(placement.applied.at)}`}`;
  const since = placement.outstandingSince === null ? '' : ` since ${clock(placement.outstandingSince)}`;
  const has =
    placement.applied === null
      ? 'nothing applied yet'
      : `has ${placement.applied.commit === null ? placement.applied.build : short(placement.applied.commit)}`;
  return `outstanding${since}, ${has}`;
}

function buildCells(build: BuildRow): string[] {
  const words: string[] = [build.state === 'answered' ? build.verdict : build.state];
  if (build.try > 1) words.push(`try ${build.try}`);
  if (build.isEffective) words.push('effective');
  if (build.notReproducible || (build.differing ?? []).length > 0) words.push('not reproducible');
  const reason = build.reason === null ? '' : `: ${build.reason}`;
  return [short(build.commit), clock(build.requestedAt), build.build, `${words.join(', ')}${reason}`];
}

export function short(commit: string): string {
  return commit.slice(0, 7);
}
