import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { UsageError } from '../domain/errors';
import type { Program } from './find';
import { serversDir } from './places';
import type { Ports } from './ports';
import type { ProcessSpec } from './processes';
import { runServer } from './server';
import type { Started } from './types';

export interface TemporalAddress {
  temporalAddress: string;
  temporalUiUrl: string | null;
}

const SEARCH_ATTRIBUTES = ['TallyVerdict=Keyword', 'TallySituation=Keyword', 'TallyStuck=Keyword', 'TallyOutstanding=Int'];

/** Temporal's dev server with its state in a file, or the one at TEMPORAL_ADDRESS. */
export async function startTemporal(
  program: Exclude<Program, { from: 'engine' }>,
  dataDir: string,
  ports: Ports,
  say: (detail: string) => void,
): Promise<Started<TemporalAddress>> {
  if (program.from === 'address') {
    await answers(program.url, 10_000).catch((error: Error) => {
      throw new UsageError(`TEMPORAL_ADDRESS=${program.url} does not answer (${error.message}): start it or unset the variable`);
    });
    say(`at ${program.url} (TEMPORAL_ADDRESS), skipped`);
    return { address: { temporalAddress: program.url, temporalUiUrl: process.env.TEMPORAL_UI_URL ?? null }, stop: async () => undefined };
  }
  const home = join(serversDir(dataDir), 'temporal');
  mkdirSync(home, { recursive: true });
  const { address, stop, how } = await runServer({
    ports,
    portNames: ['temporal', 'temporal-ui', 'temporal-http', 'temporal-metrics'],
    readyWithinMs: 60_000,
    spec: ([port, uiPort, httpPort, metricsPort]) => specOf(program.path, home, { port, uiPort, httpPort, metricsPort }),
    address: ([port, uiPort]) => ({ temporalAddress: `127.0.0.1:${port}`, temporalUiUrl: `http://127.0.0.1:${uiPort}` }),
    probe: ({ temporalAddress }) => answers(temporalAddress, 2_000),
  });
  say(`${how} at ${address.temporalAddress}, UI ${address.temporalUiUrl}`);
  return { address, stop };
}

function specOf(command: string, home: string, ports: Record<string, number | undefined>): ProcessSpec {
  const args = ['server', 'start-dev', '--ip', '127.0.0.1', '--port', `${ports.port}`, '--ui-port', `${ports.uiPort}`];
  args.push('--http-port', `${ports.httpPort}`, '--metrics-port', `${ports.metricsPort}`);
  args.push('--db-filename', join(home, 'temporal.db'), '--log-level', 'warn', '--ui-disable-news-fetch');
  args.push('--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL');
  for (const attribute of SEARCH_ATTRIBUTES) args.push('--search-attribute', attribute);
  return { name: 'temporal', home, command, args, env: process.env, stopSignal: 'SIGTERM' };
}

async function answers(address: string, timeoutMs: number): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: timeoutMs });
  try {
    await connection.withDeadline(Date.now() + timeoutMs, () => connection.workflowService.describeNamespace({ namespace: 'default' }));
  } finally {
    await connection.close();
  }
}
