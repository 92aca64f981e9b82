/** What the demo looks at: the mesh through its API, and the machines themselves, as a user of them would. */
import { renderTimes } from '../domain/times';
import type { ModuleAnswer, NodeAnswer, StatusAnswer } from '../schema/api';
import type { Seen } from './stage';

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
