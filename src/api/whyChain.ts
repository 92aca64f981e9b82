/** `tally why`: what of a module's source and inputs differs, and by which edges that reaches it. */
import type { Facts, InputFacts, MissingInput, SettlingInput } from '../domain/facts';
import { short } from '../domain/line';
import { minuteOf } from '../domain/times';
import { stateOf } from '../domain/waiting';
import type { EdgeStep } from '../inventory/asking';
import type { WhyChain } from '../schema/graphApi';
import { byModule, chainAlong, chainText, chainTo, type Hop, reachedBy, start } from './chain';

/** So many of a kind are named; the rest is counted. */
const MOST_NAMED = 20;

/**
 * @param edges what the module builds on, at whatever distance
 * @param commits of artifacts, by digest
 * @param ring the cycle that the module lies in, also where its head was judged before the cycle came to be
 */
export function whyChains(
  facts: Facts,
  edges: readonly EdgeStep[],
  commits: ReadonlyMap<string, string>,
  ring: readonly string[] | null = null,
): WhyChain[] {
  const { module, graph } = facts;
  const of = byModule(edges);
  const via = reachedBy(of, module);
  const moved = movedInputs(facts);
  // What lies in its own cycle is never built, so that it is waited for says no more.
  const knotted = new Set([...(graph.cycle ?? []), ...(graph.bootstrap ?? [])]);
  const missing = graph.missing.filter((input) => !knotted.has(input.module));
  const lacking = new Set(missing.map((input) => input.module));
  const doing = new Map(graph.settling.map((input) => [input.module, input]));
  const settling = graph.settling.filter((input) => !knotted.has(input.module) && !lacking.has(input.module));
  return [
    ...(graph.cycle === null ? [] : [chain('cycle', chainAlong(of, graph.cycle), 'a cycle: take one of these imports out')]),
    ...(graph.cycle !== null || ring === null
      ? []
      : [chain('cycle', chainAlong(of, ring), 'a cycle: its next change is not built until one of these imports is gone')]),
    ...(graph.bootstrap === null ? [] : [chain('bootstrap', chainAlong(of, graph.bootstrap), 'a circle that only an import of tests closes')]),
    ...graph.conflicts.map(({ name, module: other }) =>
      chain('conflict', [start(module), start(other)], `${other} exported ${name} before this one: rename it in one of the two`),
    ),
    ...named(graph.unparsed, 'unparsed', module, 'more files are not parsed', (text) =>
      chain('unparsed', [start(module)], `not parsed: ${text}; the edges of before stay in force`),
    ),
    ...sourceChain(facts),
    ...named(moved, 'moved', module, 'more of its inputs moved', (input) =>
      chain(input.kind, chainTo(via, module, input.module), movedText(input, commits)),
    ),
    ...named(missing, 'missing', module, 'more have no fit build yet that carries what is imported', (input) =>
      chain('missing', chainTo(via, module, input.module), missingText(input, doing.get(input.module))),
    ),
    ...named(settling, 'waiting', module, 'more have not settled', (input) =>
      chain(
        'waiting',
        chainAlong(of, input.path),
        `${input.module} (${stateOf(input)}) has not settled since ${minuteOf(input.since)}, last progress ${minuteOf(input.progressAt)}`,
      ),
    ),
  ];
}

function named<T>(items: readonly T[], kind: WhyChain['kind'], module: string, rest: string, toChain: (item: T) => WhyChain): WhyChain[] {
  const all = items.slice(0, MOST_NAMED).map(toChain);
  return items.length > MOST_NAMED ? [...all, chain(kind, [start(module)], `${items.length - MOST_NAMED} ${rest}`)] : all;
}

function missingText({ because, since, needsPerson }: MissingInput, doing: SettlingInput | undefined): string {
  const at = doing === undefined ? '' : ` (${stateOf(doing)}, last progress ${minuteOf(doing.progressAt)})`;
  return `${because}${at}, since ${minuteOf(since)}${needsPerson ? '; it needs a person' : ''}`;
}

function chain(kind: WhyChain['kind'], hops: readonly Hop[], says: string): WhyChain {
  return { kind, path: hops.map(({ module, file, line }) => ({ module, file, line })), says: `${chainText(hops)}: ${says}` };
}

function sourceChain({ module, source, headBuild, effective }: Facts): WhyChain[] {
  const { head } = source;
  if (head === null || headBuild?.verdict === 'fit' || effective === null || effective.commit === head.commit) return [];
  return [chain('source', [start(module)], `source moved ${short(effective.commit)} → ${short(head.commit)}`)];
}

interface Moved {
  readonly kind: 'moved' | 'appeared' | 'gone';
  readonly module: string;
  readonly artifact: string;
  readonly before: string | null;
  readonly now: string | null;
}

/**
 * What differs between the newest build of this commit and one made now; nothing where the commit was not built yet. Where
 * it failed, what differs from the build that is effective: one of these is the reason.
 */
export function movedInputs({ graph, headBuild, effective, source }: Facts): Moved[] {
  const wasBuilt = graph.builtInputs.length > 0 || effective?.commit === source.head?.commit || (headBuild !== null && effective !== null);
  if (headBuild?.verdict === 'fit' || !wasBuilt) return [];
  const keyOf = (input: InputFacts): string => `${input.module}/${input.artifact}`;
  const built = new Map(graph.builtInputs.map((input) => [keyOf(input), input]));
  const wanted = new Map(graph.inputs.map((input) => [keyOf(input), input]));
  const moved: Moved[] = [];
  for (const [key, { module, artifact, digest }] of wanted) {
    const before = built.get(key)?.digest ?? null;
    if (before !== digest) moved.push({ kind: before === null ? 'appeared' : 'moved', module, artifact, before, now: digest });
  }
  for (const [key, { module, artifact, digest }] of built) {
    if (!wanted.has(key)) moved.push({ kind: 'gone', module, artifact, before: digest, now: null });
  }
  return moved;
}

function movedText({ module, artifact, before, now }: Moved, commits: ReadonlyMap<string, string>): string {
  const what = artifact === module ? module : `${module}/${artifact}`;
  if (now === null) return `${what} is no input any more; it was built with ${shortDigest(before ?? '')}`;
  const commit = commits.get(now);
  const from = commit === undefined ? '' : `, commit ${short(commit)}`;
  if (before === null) return `${what} is a new input, ${shortDigest(now)}${from}`;
  return `${what} moved ${shortDigest(before)} → ${shortDigest(now)}${from}`;
}

const SHOWN_HEX = 7;

export function shortDigest(digest: string): string {
  const [kind = '', hex = ''] = digest.split(':');
  return `${kind}:${hex.slice(0, SHOWN_HEX)}…`;
}
