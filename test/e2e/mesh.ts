/** A whole mesh of real processes for one test: a database, vhost, namespace and task queue of its own on the run's servers. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Mesh } from '../../src/demo/looks';
import { meshOf, type Tally, tallyCommand } from '../../src/demo/tally';
import { stopServices } from '../../src/host';
import { addToken, type Db, migrate, openInventory, setSetting, whoIs } from '../../src/inventory';
import { keptToken, type LocalMesh, localMesh, processesOf, untilAnswering } from '../../src/processes';
import { Ports } from '../../src/servers/ports';
import { freshDatabase, freshVhost, registryUrl, taskQueue, temporalNamespace } from '../support/servers';

export interface WholeMesh {
  readonly dataDir: string;
  readonly local: LocalMesh;
  readonly db: Db;
  readonly tally: Tally;
  readonly mesh: Mesh;
  readonly amqpUrl: string;
  readonly managementUrl: string;
  /** What the processes said of ends that nobody asked for. */
  readonly said: string[];
  close(): Promise<void>;
}

export async function wholeMesh(times: Readonly<Record<string, string>>): Promise<WholeMesh> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tally-e2e-'));
  const databaseUrl = await freshDatabase();
  const { amqpUrl, managementUrl } = await freshVhost();
  const { address, namespace } = await temporalNamespace();
  await migrate(databaseUrl);
  const db = openInventory(databaseUrl, { max: 3 });
  await setSetting(db, 'declareDefault', 'auto');
  const said: string[] = [];
  const local = await localMesh({
    dataDir,
    addresses: { temporalAddress: address, temporalUiUrl: null, databaseUrl, amqpUrl, amqpManagementUrl: managementUrl, registryUrl: registryUrl() },
    apiPort: await new Ports(dataDir).free('api'),
    environment: { ...times, TEMPORAL_NAMESPACE: namespace, TALLY_TASK_QUEUE: taskQueue() },
    say: (line) => said.push(line),
  });
  await keptToken(local.places, local.apiUrl, { add: (name) => addToken(db, name), whoIs: (token) => whoIs(db, token) });
  await local.control.start();
  await local.builder.start();
  await untilAnswering(local);
  return {
    dataDir,
    local,
    db,
    tally: tallyCommand(local.places.home),
    mesh: meshOf(local.places.home),
    amqpUrl,
    managementUrl,
    said,
    async close() {
      await local.stop();
      const nodes = readdirSync(local.places.nodes);
      await Promise.all(nodes.map((node) => stopServices(join(local.places.nodes, node, 'state'))));
      await db.close();
      const left = processesOf(dataDir);
      if (left.length > 0) throw new Error(`still running: ${left.map(({ pid, command }) => `${pid} ${command}`).join(', ')}`);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
