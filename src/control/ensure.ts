/** At start and every minute: what must be there is there, whoever wiped it. */
import { dropPastVersions } from '../inventory/credentials';
import { listModules, type ModuleRef } from '../inventory/modules';
import { listNodes } from '../inventory/nodes';
import { meshHealth } from '../inventory/overview';
import { declareNode } from '../link';
import type { ControlDeps } from './deps';
import { forEachLimited } from './limit';
import { type Loop, startLoop } from './loop';

const EVERY_MS = 60_000;
const AT_A_TIME = 16;
/** The next minute takes the rest. */
const MOST_STARTED_A_PASS = 1_000;

export interface EnsureOptions {
  /** The nodes' accounts, on a broker that may have lost them. */
  readonly ensureAccounts?: () => Promise<unknown>;
  /** Search attributes and schedules. */
  readonly ensureTemporal: () => Promise<void>;
  /** Names of the modules whose workflow runs. */
  readonly runningModules: () => Promise<ReadonlySet<string>>;
  /** Grows with every connection to the broker, which may have lost what it held. */
  readonly connections: () => number;
}

export function startEnsurePass(deps: ControlDeps, options: EnsureOptions): Loop {
  let declaredAt = -1;
  let accountsAt = -1;
  return startLoop({
    name: 'ensure pass',
    log: deps.log,
    pauseMs: () => EVERY_MS,
    pass: async () => {
      const connection = options.connections();
      if (connection !== declaredAt) {
        await declareNodes(deps);
        declaredAt = connection;
      }
      await dropPastVersions(deps.db);
      await options.ensureTemporal();
      const started = await startMissing(deps, options);
      if (connection !== accountsAt && (await accountsEnsured(deps, options))) accountsAt = connection;
      await alarm(deps);
      return started;
    },
  });
}

async function declareNodes({ db, link }: ControlDeps): Promise<void> {
  const nodes = await listNodes(db);
  const failures: unknown[] = [];
  await forEachLimited(nodes, AT_A_TIME, async ({ name }) => {
    await declareNode(link, name).catch((error: unknown) => failures.push(error));
  });
  if (failures.length > 0) throw failures[0];
}

/** A management API that does not answer is asked again in a minute and keeps nothing else from being ensured. */
async function accountsEnsured({ log }: ControlDeps, { ensureAccounts }: EnsureOptions): Promise<boolean> {
  try {
    await ensureAccounts?.();
    return true;
  } catch (error) {
    log.warn({ err: error }, 'whether the broker knows the accounts of all nodes could not be seen; asked again in a minute');
    return false;
  }
}

/** A nudge starts the workflow of a module that has none. */
async function startMissing({ db, temporal }: ControlDeps, { runningModules }: EnsureOptions): Promise<number> {
  const running = await runningModules();
  const missing = (await listModules(db)).filter(({ name }) => !running.has(name)).slice(0, MOST_STARTED_A_PASS);
  const failures: unknown[] = [];
  await forEachLimited(missing, AT_A_TIME, async ({ name, repository }: ModuleRef) => {
    if (failures.length > 0) return;
    await temporal.nudge({ name, repository }).catch((error: unknown) => failures.push(error));
  });
  if (failures.length > 0) throw failures[0];
  return missing.length;
}

/** From the store and not from Temporal, so that it is said also when Temporal does nothing. */
async function alarm({ db, log, now, times }: ControlDeps): Promise<void> {
  const { oldestOwedSince, oldestOwedModule } = await meshHealth(db);
  if (oldestOwedSince === null) return;
  const owedMs = now().getTime() - Date.parse(oldestOwedSince);
  if (owedMs > 2 * times.sweep) log.warn({ module: oldestOwedModule, owedSince: oldestOwedSince }, 'a comparison is owed for longer than two sweeps');
}
