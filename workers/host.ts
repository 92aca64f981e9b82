/** The host as a process: resident on the link, once without it, or to stop the services that it left running. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { UsageError } from '../src/domain/errors';
import { defaultTimes, type Times } from '../src/domain/times';

const STOP_TIMEOUT_MS = 8_000;
const USAGE = 'use: host --credentials FILE --root DIR --state DIR [--once [--declaration FILE [--unsigned]]], or: host stop --state DIR';

async function main(): Promise<number> {
  const { values, positionals } = readArguments();
  const { state, root = '/' } = values;
  if (state === undefined) throw new UsageError(`--state is missing: ${USAGE}`);
  process.umask(0o022);
  if (positionals[0] === 'stop') {
    const { stopServices } = require('../src/host') as typeof import('../src/host');
    await stopServices(state);
    return 0;
  }
  const times = readTimes();
  if (values.once === true) {
    const { runOnce } = require('../src/host/once') as typeof import('../src/host/once');
    const { credentials = null, declaration = null, unsigned = false } = values;
    return await runOnce({ root, state, times, credentials, declaration, isUnsigned: unsigned });
  }
  if (values.credentials === undefined) throw new UsageError(`--credentials is missing: ${USAGE}`);
  return await runResident(values.credentials, { root, state, times });
}

async function runResident(file: string, { root, state, times }: { root: string; state: string; times: Times }): Promise<number> {
  const { startAgent } = require('../src/host/agent') as typeof import('../src/host/agent');
  const { openHost } = require('../src/host/context') as typeof import('../src/host/context');
  const { keptNodeKey, readCredentials } = require('../src/host/credentials') as typeof import('../src/host/credentials');
  const { keptSealKey } = require('../src/host/secrets') as typeof import('../src/host/secrets');
  const { openLink } = require('../src/link') as typeof import('../src/link');
  const { createLog } = require('../src/log') as typeof import('../src/log');
  const { createRegistryClient } = require('../src/registry') as typeof import('../src/registry');
  const { packageRoot } = require('../src/servers/places') as typeof import('../src/servers/places');

  const { mesh, node, amqpUrl, registryUrl, meshPublicKey } = readCredentials(file);
  const log = createLog('host', process.env.TALLY_LOG_LEVEL || undefined).child({ node });
  const host = await openHost({ root, state, settleMs: times.serviceSettle, registry: () => createRegistryClient({ url: registryUrl }) });
  const key = keptNodeKey(host.state);
  const sealKey = keptSealKey(host.state).publicKey;
  const link = await openLink({
    url: amqpUrl,
    name: `host ${node}`,
    onState: ({ isUp, reason }) => (isUp ? log.info('the broker is there') : log.warn({ reason }, 'the broker is away')),
    onHandlerError: (error, queue) => log.warn({ queue, error: String(error) }, 'a declaration could not be taken'),
  });
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string };
  const agent = await startAgent({ host, link, mesh, node, meshPublicKey, key, sealKey, version, times, log });
  log.info({ root: host.root.path, state: host.state }, 'the host runs');

  const signal = await new Promise<string>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => resolve(name));
  });
  log.info({ signal }, 'the host ends; services go on running');
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
  await agent.stop();
  await link.close();
  host.release();
  return 0;
}

function readArguments() {
  const options = {
    credentials: { type: 'string' },
    root: { type: 'string' },
    state: { type: 'string' },
    once: { type: 'boolean' },
    declaration: { type: 'string' },
    unsigned: { type: 'boolean' },
  } as const;
  try {
    const args = process.argv.slice(2).filter((arg, at) => !(at === 0 && arg === 'host'));
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}: ${USAGE}`);
  }
}

/** Parsed only where one is set: the parser costs more than a whole pass. */
function readTimes(): Times {
  if (!Object.keys(process.env).some((name) => name.startsWith('TALLY_TIMES_'))) return defaultTimes;
  return (require('../src/config') as typeof import('../src/config')).readTimes(process.env);
}

main()
  .then((status) => process.exit(status))
  .catch((error: unknown) => {
    process.stderr.write(
      `${error instanceof UsageError ? error.message : `the host ended: ${error instanceof Error ? error.message : String(error)}`}\n`,
    );
    process.exit(error instanceof UsageError ? 2 : 1);
  });
