import { randomInt } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { EnvironmentError, UsageError } from '../domain/errors';

/** Below the range from which the kernel takes ports for outgoing connections, so that what is remembered stays free. */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const TRIES = 200;

/**
 * The ports of one data directory. Each is chosen once and remembered, so that the next start answers at the same
 * address; TALLY_PORT_<NAME> sets one. A remembered port that someone else took meanwhile is replaced.
 */
export class Ports {
  private readonly file: string;
  private readonly remembered: Record<string, number>;

  constructor(serversDir: string) {
    this.file = join(serversDir, 'ports.json');
    this.remembered = readPorts(this.file);
  }

  /** The port that `name` had last, whoever listens there now. */
  last(name: string): number | undefined {
    return configuredPort(name) ?? this.remembered[name];
  }

  /** A port for `name` on which nobody listens at this moment. */
  async free(name: string): Promise<number> {
    const configured = configuredPort(name);
    if (configured !== undefined) {
      if (await isFree(configured)) return configured;
      throw new UsageError(`${variable(name)}=${configured}, but something else listens there: stop it or set another port`);
    }
    const before = this.remembered[name];
    if (before !== undefined && (await isFree(before))) return before;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const port = randomInt(LOWEST, HIGHEST);
      if (Object.values(this.remembered).includes(port) || !(await isFree(port))) continue;
      this.remember(name, port);
      return port;
    }
    throw new EnvironmentError(`no free port on 127.0.0.1 between ${LOWEST} and ${HIGHEST}: tried ${TRIES}`);
  }

  /** Whether someone listens on one of them, who is not the server that just failed to. */
  async areTaken(ports: number[]): Promise<boolean> {
    const free = await Promise.all(ports.map(isFree));
    return free.includes(false);
  }

  private remember(name: string, port: number): void {
    this.remembered[name] = port;
    writeFileSync(`${this.file}.new`, `${JSON.stringify(this.remembered, null, 2)}\n`);
    renameSync(`${this.file}.new`, this.file);
  }
}

function variable(name: string): string {
  return `TALLY_PORT_${name.toUpperCase().replaceAll('-', '_')}`;
}

function configuredPort(name: string): number | undefined {
  const text = process.env[variable(name)];
  if (text === undefined || text === '') return undefined;
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new UsageError(`${variable(name)}=${text} is no port: give a number from 1 to 65535`);
}

function readPorts(file: string): Record<string, number> {
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof parsed !== 'object' || parsed === null) return {};
    return Object.fromEntries(Object.entries(parsed).filter((entry): entry is [string, number] => Number.isInteger(entry[1])));
  } catch {
    // No file, or one cut short by a crash: ports are chosen anew.
    return {};
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
