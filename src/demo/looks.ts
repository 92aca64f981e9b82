/** What the demo looks at: the mesh through its API, and the machines themselves, as a user of them would. */
import { renderTimes } from '../domain/times';
import type { ModuleAnswer, NodeAnswer, StatusAnswer } from '../schema/api';
import { DemoFailure, type Seen } from './stage';

/** The HTTP API, as the CLI speaks to it. */
export interface Mesh {
  status(): Promise<StatusAnswer>;
  module(name: string): Promise<ModuleAnswer>;
  node(name: string): Promise<NodeAnswer>;
}

const HTTP_TIMEOUT_MS = 2_000;

/** `module  line`, as `tally status MODULE` shows it. */
export async function resultLine(mesh: Mesh, module: string): Promise<string> {
  const { row } = await mesh.module(module);
  return `${module}  ${shown(row.line)}`;
}

export function shown(text: string): string {
  return renderTimes(text, Date.now(), -new Date().getTimezoneOffset());
}

/** In step at exactly this commit. */
export async function isDelivered(mesh: Mesh, module: string, commit: string): Promise<Seen> {
  const { row } = await mesh.module(module);
  return { isSo: row.head === commit && row.urgency === 'in step', says: shown(row.line) };
}

export interface Built {
  readonly fit: number;
  readonly digests: string;
}

/** By module, how many fit builds it has had and what the newest one made. */
export async function fitBuilds(mesh: Mesh): Promise<Map<string, Built>> {
  const { modules } = await mesh.status();
  const built = await Promise.all(modules.map(async ({ module }) => [module, await builtOf(mesh, module)] as const));
  return new Map(built);
}

async function builtOf(mesh: Mesh, module: string): Promise<Built> {
  const { builds } = await mesh.module(module);
  const fit = builds.filter(({ verdict }) => verdict === 'fit');
  return { fit: fit.length, digests: digestsIn(fit[0]) };
}

type Build = ModuleAnswer['builds'][number];

export async function newestFit(mesh: Mesh, module: string): Promise<Build | undefined> {
  return (await mesh.module(module)).builds.find(({ verdict }) => verdict === 'fit');
}

export async function digestsOf(mesh: Mesh, module: string): Promise<string> {
  return digestsIn(await newestFit(mesh, module));
}

function digestsIn(build: Build | undefined): string {
  return (build?.artifacts ?? []).map(({ name, digest }) => `${name}=${digest}`).join(' ');
}

/** In step again after exactly one fit build more than before: not none, and not two. */
export async function isBuiltOnceMore(mesh: Mesh, module: string, before: ReadonlyMap<string, Built>): Promise<Seen> {
  const [{ row }, { fit }] = await Promise.all([mesh.module(module), builtOf(mesh, module)]);
  const more = fit - (before.get(module)?.fit ?? 0);
  if (more > 1) throw new DemoFailure(`expected: ${module} is built once\nseen: it was built ${more} times`);
  return { isSo: more === 1 && row.urgency === 'in step', says: shown(row.line) };
}

export async function isUntouched(mesh: Mesh, module: string, before: ReadonlyMap<string, Built>): Promise<Seen> {
  const [{ row, builds }, { fit }] = await Promise.all([mesh.module(module), builtOf(mesh, module)]);
  const open = builds.filter(({ verdict, state }) => verdict === 'outstanding' && state !== 'cancelled');
  return { isSo: fit === before.get(module)?.fit && open.length === 0 && row.urgency === 'in step', says: shown(row.line) };
}

/** The newest sequence that each node was sent. */
export async function sentTo(mesh: Mesh): Promise<string> {
  const { nodes } = await mesh.status();
  const sent = await Promise.all(nodes.map(async ({ node }) => `${node}=${(await mesh.node(node)).sent?.sequence ?? 'nothing'}`));
  return sent.join(' ');
}

/** What a service of a node answers to anybody who asks. */
export async function answerOf(port: number, path: string): Promise<string> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(HTTP_TIMEOUT_MS) });
    return (await response.text()).trim();
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return `no answer (${cause instanceof Error ? cause.message : String(cause)})`;
  }
}
