/**
 * The control plane as a process: loops over the broker, a Temporal worker, the HTTP API. Several may run side by side.
 * Each server may be away at the start: it is waited for. A second signal ends it at once; what it had not stored is
 * delivered again.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { DefaultLogger, makeTelemetryFilterString, Runtime, type Worker } from '@temporalio/worker';
import { brokerAccess, createApi, serverProbes } from '../src/api';
import { type Config, readConfig } from '../src/config';
import { type ControlDeps, createPasses, createSourceReader, restoreAccounts, startControl } from '../src/control';
import { UsageError } from '../src/domain/errors';
import { listNodes, migrate, openInventory } from '../src/inventory';
import { createSealing, EXCHANGES, findManagement, keptMeshKey, keptSigningKey, nodeAccount, openLink } from '../src/link';
import { createLog, type Log } from '../src/log';
import { createRegistryClient } from '../src/registry';
import { readRef } from '../src/source';
import { bundleWorkflows } from '../src/temporal/bundle';
import { connectTemporal } from '../src/temporal/client';
import { ensureSchedules, ensureSearchAttributes } from '../src/temporal/ensure';
import { runningModules } from '../src/temporal/running';
import { createControlWorker } from '../src/temporal/worker';

const STOP_WITHIN_MS = 25_000;
const READ_REF_WITHIN_MS = 20_000;
const STORE_CONNECTIONS = 20;
const AGAIN_AFTER_MS = 1_000;

type Stop = () => Promise<unknown>;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog('control', config.logLevel);
  const ending = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (ending.signal.aborted) process.exit(1);
      ending.abort();
      setTimeout(() => process.exit(1), STOP_WITHIN_MS).unref();
    });
  }
  const stops: Stop[] = [];
  try {
    await run(config, log, ending.signal, stops);
  } finally {
    for (const stop of stops.reverse()) await stop().catch((error: unknown) => log.warn({ err: error }, 'something did not end as it should'));
  }
}

async function run(config: Config, log: ReturnType<typeof createLog>, ending: AbortSignal, stops: Stop[]): Promise<void> {
  const meshKey = keptMeshKey(config.home);
  const signingKey = keptSigningKey(config.home);
  await untilUp('the store', log, ending, () => migrate(config.databaseUrl));
  const db = openInventory(config.databaseUrl, { max: STORE_CONNECTIONS });
  stops.push(() => db.close());

  const link = await openLink({
    url: config.amqpUrl,
    name: `control ${process.pid}`,
    onState: ({ isUp, reason }) => (isUp ? log.info('the broker is there') : log.warn({ reason }, 'the broker is away')),
    onHandlerError: (error, queue) => log.warn({ queue, err: error }, 'a message was not taken in; it comes again'),
  });
  stops.push(() => link.close());

  const { temporalAddress: address, temporalNamespace: namespace, taskQueue, times } = config;
  const temporal = connectTemporal({ address, namespace, taskQueue, boardUrl: config.publicUrl });
  stops.push(() => temporal.close());

  const now = (): Date => new Date();
  const deps: ControlDeps = {
    db,
    link,
    temporal,
    times,
    log,
    now,
    signingKey,
    sealing: createSealing(meshKey),
    accountOfNode: (node) => nodeAccount(config.amqpUrl, node),
    readRef: (repository, ref) => readRef(repository, ref, { timeoutMs: READ_REF_WITHIN_MS }),
  };
  const management = (): ReturnType<typeof findManagement> => findManagement(config.amqpUrl, config.amqpManagementUrl ?? undefined);
  const control = await untilUp('the broker', log, ending, () =>
    startControl(deps, {
      ensureTemporal: async () => {
        await ensureSearchAttributes(temporal.client);
        await ensureSchedules(temporal.client, taskQueue, times);
      },
      runningModules: () => runningModules(temporal.client),
      connections: link.connections,
      ensureAccounts: async () => restoreAccounts(deps, await management(), config.home),
    }),
  );
  const sources = createSourceReader(deps, control.wakeNudges);
  stops.push(() => Promise.all([control.stop(), sources.stop()]));

  const { amqpUrl, registryUrl, publicUrl, temporalUiUrl, home } = config;
  const api = createApi({
    db,
    temporal,
    log,
    meshKey,
    registry: createRegistryClient({ url: registryUrl }),
    config: { publicUrl, temporalUiUrl, temporalNamespace: namespace, home, times },
    access: brokerAccess({ link, management, amqpUrl, registryUrl, meshPublicKey: signingKey.publicKey }),
    onEvent: (modules) => sources.expect(modules),
    probes: serverProbes({ temporal, link, management, registryUrl, nodes: () => listNodes(db) }),
  });
  stops.push(() => api.close());
  await api.listen(config.listen);

  const decisions = { db, times, now };
  const asked = { db, now, publishRequest: (routingKey: string, body: object) => link.publish(EXCHANGES.requests, routingKey, body) };
  const passes = createPasses(deps, sources);
  Runtime.install({
    logger: new DefaultLogger('WARN', ({ message, meta }) => log.warn({ meta }, message)),
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR' }), forward: {} } },
  });
  const workflowBundle = await bundleWorkflows();
  const { worker, connection } = await untilUp('Temporal', log, ending, async () => {
    await ensureSearchAttributes(temporal.client);
    const identity = `tally-control-${process.pid}`;
    return await createControlWorker({ address, namespace, taskQueue, identity, decisions, asked, passes, workflowBundle });
  });
  stops.push(() => connection.close());
  log.info({ listen: config.listen }, 'the control plane runs');
  await runUntil(worker, ending);
}

/** Rejects when the worker fails: the process then ends, and whoever keeps it starts it again. */
async function runUntil(worker: Worker, ending: AbortSignal): Promise<void> {
  const shutdown = (): void => worker.shutdown();
  const running = worker.run();
  if (ending.aborted) shutdown();
  else ending.addEventListener('abort', shutdown, { once: true });
  await running;
}

/** As often as it takes, said once; a mistake in the configuration is no reason to wait. */
async function untilUp<T>(what: string, log: Log, ending: AbortSignal, start: () => Promise<T>): Promise<T> {
  let isSaid = false;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (error instanceof UsageError || ending.aborted) throw error;
      if (!isSaid) log.warn({ err: error }, `${what} is waited for`);
      isSaid = true;
    }
    await pause(AGAIN_AFTER_MS, undefined, { signal: ending });
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    if (error instanceof Error && error.name === 'AbortError') process.exit(0);
    process.stderr.write(
      `${error instanceof UsageError ? '' : 'the control plane ended: '}${error instanceof Error ? error.message : String(error)}\n`,
    );
    process.exit(error instanceof UsageError ? 2 : 1);
  },
);
