/**
 * Currency: in what the head's closure differs from what was built, and which open requests are of a closure that is no
 * more. When it may be built is another question, and another file: waiting.ts.
 */
import type { Facts, InputFacts, RequestFacts } from './facts';
import { short } from './words';

/** Nobody has taken it, so that withdrawing it costs nothing. */
export function isUnstarted(request: RequestFacts): boolean {
  return request.state !== 'taken';
}

/** A new head, or an input that moved: what such a request would make is stale before it begins. */
export function isOutdated(request: RequestFacts, facts: Facts): boolean {
  if (request.commit !== facts.source.head?.commit) return true;
  return request.kind === 'build' && facts.closure !== null && request.closure !== null && request.closure !== facts.closure;
}

/** Why the head is stale, or was never built. */
export function staleReason(facts: Facts): string {
  const { effective, source, graph } = facts;
  const at = source.head === null ? 'its head' : short(source.head.commit);
  const isRebuilt = graph.builtInputs.length > 0 || effective?.commit === source.head?.commit;
  if (isRebuilt) {
    const moved = movedInputs(graph.builtInputs, graph.inputs);
    if (moved.length > 0)
      return moved.length > MOST_NAMED ? `${moved.slice(0, MOST_NAMED).join(', ')} and ${moved.length - MOST_NAMED} more` : moved.join(', ');
    return `${at} has not been built with the inputs that it has now`;
  }
  if (effective === null) return `${at} has not been built and nothing was before`;
  return `source moved to ${at}, built from ${short(effective.commit)}`;
}

/** How many inputs a reason names before it counts the rest. */
const MOST_NAMED = 3;

/** One clause for each module of which another artifact, or none any more, would be used now. */
function movedInputs(built: readonly InputFacts[], now: readonly InputFacts[]): string[] {
  const before = byModule(built);
  const after = byModule(now);
  const clauses: string[] = [];
  for (const module of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const [was, is] = [before.get(module), after.get(module)];
    if (was === undefined) clauses.push(`an import now resolves to ${module}${onlyTests(is)}`);
    else if (is === undefined) clauses.push(`no import resolves to ${module} any more`);
    else clauses.push(...movedOf(module, was, is));
  }
  return clauses;
}

type Artifacts = ReadonlyMap<string, InputFacts>;

function byModule(inputs: readonly InputFacts[]): ReadonlyMap<string, Artifacts> {
  const found = new Map<string, Map<string, InputFacts>>();
  for (const input of inputs) {
    const artifacts = found.get(input.module) ?? new Map<string, InputFacts>();
    found.set(input.module, artifacts.set(input.artifact, input));
  }
  return found;
}

function movedOf(module: string, was: Artifacts, is: Artifacts): string[] {
  const shared = [...is.values()].find((input) => was.has(input.artifact) && was.get(input.artifact)?.digest !== input.digest);
  if (shared !== undefined) {
    const from = was.get(shared.artifact)?.digest ?? '';
    return [`${module} moved from ${shortDigest(from)} to ${shortDigest(shared.digest)}${shared.isTest ? ' (tests only)' : ''}`];
  }
  const names = [...is.keys()].filter((artifact) => !was.has(artifact));
  if (names.length > 0) return [`${names.join(', ')} of ${module} is used now`];
  const gone = [...was.keys()].filter((artifact) => !is.has(artifact));
  return gone.length > 0 ? [`${gone.join(', ')} of ${module} is not used any more`] : [];
}

function onlyTests(artifacts: Artifacts | undefined): string {
  return artifacts !== undefined && [...artifacts.values()].every((input) => input.isTest) ? ' (tests only)' : '';
}

/** The first digits of a digest, as a commit's. */
function shortDigest(digest: string): string {
  return short(digest.replace(/^sha256:/, ''));
}
