import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { findTestServer, plainReporter, startServers } from '../../src/servers';
import { newDataDir, removeAbandoned } from './dataDir';
import { beginRun } from './test-run';

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
  const dataDir = newDataDir();
  try {
    const servers = await startServers({ dataDir, reporter });
    const { addresses } = servers;
    beginRun({ servers, dataDir });
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
