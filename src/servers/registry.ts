import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EnvironmentError, UsageError } from '../domain/errors';
import { runContainer } from './container';
import type { Program } from './find';
import { serversDir } from './places';
import type { Ports } from './ports';
import { runServer } from './server';
import type { Started } from './types';

export interface RegistryAddress {
  registryUrl: string;
}

const IMAGE = 'docker.io/library/registry:2.8.3';

/** An OCI registry that lets manifests be deleted, with its data in the data directory; or the one at REGISTRY_URL. */
export async function startRegistry(
  program: Program,
  dataDir: string,
  ports: Ports,
  say: (detail: string) => void,
): Promise<Started<RegistryAddress>> {
  if (program.from === 'address') {
    const registryUrl = program.url.replace(/\/+$/, '');
    await answers({ registryUrl }).catch((error: Error) => {
      throw new UsageError(`REGISTRY_URL=${registryUrl} does not answer (${error.message}): start it or unset the variable`);
    });
    say(`at ${registryUrl} (REGISTRY_URL), skipped`);
    return { address: { registryUrl }, stop: async () => undefined };
  }
  const home = join(serversDir(dataDir), 'registry');
  const blobs = join(home, 'data');
  mkdirSync(blobs, { recursive: true });
  const address = ([port]: number[]) => ({ registryUrl: `http://127.0.0.1:${port}` });
  const common = { ports, portNames: ['registry'], readyWithinMs: 30_000, address, probe: answers };
  const running =
    program.from === 'engine'
      ? await runContainer({
          ...common,
          dataDir,
          container: ([port = 0]) => ({
            engine: program.engine,
            name: 'registry',
            image: IMAGE,
            ports: { [port]: 5000 },
            mounts: { [blobs]: '/var/lib/registry' },
            env: { REGISTRY_STORAGE_DELETE_ENABLED: 'true', REGISTRY_HTTP_SECRET: randomBytes(16).toString('hex') },
          }),
        })
      : await runServer({
          ...common,
          spec: ([port]) => {
            const file = join(home, 'config.yml');
            const config = configOf(blobs, port ?? 0);
            writeFileSync(file, config, { mode: 0o600 });
            return { name: 'registry', home, command: program.path, args: ['serve', file], env: process.env, stopSignal: 'SIGTERM', config };
          },
        });
  say(`${running.how} at ${running.address.registryUrl}`);
  return running;
}

function configOf(blobs: string, port: number): string {
  return `version: 0.1
log: { level: warn, accesslog: { disabled: true } }
storage:
  filesystem: { rootdirectory: ${JSON.stringify(blobs)} }
  delete: { enabled: true }
http:
  addr: 127.0.0.1:${port}
  # One process alone serves this data, so an upload's state needs no lasting secret; the key stops a warning.
  secret: tally
`;
}

async function answers({ registryUrl }: RegistryAddress): Promise<void> {
  const response = await fetch(`${registryUrl}/v2/`, { signal: AbortSignal.timeout(5_000) });
  // 401 is the answer of a registry that wants a login: it is there.
  if (!response.ok && response.status !== 401) throw new EnvironmentError(`GET /v2/ answered ${response.status}`);
}
