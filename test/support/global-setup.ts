import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { findTestServer, plainReporter, type Servers, startServers, stopLeftovers } from '../../src/servers';
import { setRun } from './test-run';

const PREFIX = 'tally-test-';

/** The part of Jest's global configuration that is read here. */
interface AskedOfJest {
  nonFlagArgs: string[];
  rootDir: string;
}

/** Brings the four servers once for all test files, unless only files were asked for that need none. */
export default async function globalSetup(config: AskedOfJest): Promise<void> {
  const reporter = plainReporter(process.stderr);
  process.stderr.write('\n');
  process.env.TALLY_TEST_SERVER = await findTestServer(resolve(config.rootDir, '.tally'), reporter);
  if (!needsServers(config.nonFlagArgs, resolve(config.rootDir, 'test'))) return;
  await removeAbandoned();
  const dataDir = mkdtempSync(join(tmpdir(), PREFIX));
  // PostgreSQL of root runs as another user, who must come through.
  chmodSync(dataDir, 0o755);
  try {
    const servers = await startServers({ dataDir, reporter });
    const { addresses } = servers;
    setRun({ servers, dataDir });
    stopOnSignal(servers, dataDir);
    // Everything a test makes on a server carries the run's name, so that the run's end can take it away.
    process.env.TALLY_TEST_RUN = randomBytes(4).toString('hex');
    process.env.TALLY_TEST_TEMPORAL = addresses.temporalAddress;
    process.env.TALLY_TEST_TEMPORAL_UI = addresses.temporalUiUrl ?? '';
    process.env.TALLY_TEST_DATABASE = addresses.databaseUrl;
    process.env.TALLY_TEST_AMQP = addresses.amqpUrl;
    process.env.TALLY_TEST_AMQP_MANAGEMENT = addresses.amqpManagementUrl ?? '';
    process.env.TALLY_TEST_REGISTRY = addresses.registryUrl;
  } catch (error) {
    rmSync(dataDir, { recursive: true, force: true });
    throw error;
  }
}

/** Jest dies of a signal without its teardown. */
function stopOnSignal(servers: Servers, dataDir: string): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, async () => {
      await servers.stop();
      rmSync(dataDir, { recursive: true, force: true });
      process.exit(1);
    });
  }
}

/** Unless each file asked for does without `support/servers`, itself and through the support files that it imports. */
function needsServers(asked: string[], tests: string): boolean {
  if (asked.length === 0) return true;
  const files = readdirSync(tests, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join(tests, file))
    .filter((file) => asked.some((pattern) => file.includes(pattern.replace(/^\.\//, '')) || new RegExp(pattern).test(file)));
  return reachable(files).has(join(tests, 'support', 'servers.ts'));
}

function reachable(files: string[]): Set<string> {
  const seen = new Set(files);
  for (const file of seen) {
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(/from '(\.[^']+)'/g)) {
      const imported = `${join(dirname(file), path)}.ts`;
      if (existsSync(imported)) seen.add(imported);
    }
  }
  return seen;
}

/** A run that was killed leaves its servers and their folder behind. */
async function removeAbandoned(): Promise<void> {
  for (const entry of readdirSync(tmpdir())) {
    const dataDir = join(tmpdir(), entry);
    const usedBy = join(dataDir, 'servers', 'used-by');
    if (!entry.startsWith(PREFIX) || !existsSync(usedBy) || existsSync(`/proc/${readFileSync(usedBy, 'utf8').trim()}`)) continue;
    await stopLeftovers(dataDir);
    rmSync(dataDir, { recursive: true, force: true });
  }
}
