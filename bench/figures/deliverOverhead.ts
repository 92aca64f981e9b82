import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { webhookSubject } from '../../src/api/modules';
import type { Db } from '../../src/inventory/db';
import { addModule } from '../../src/inventory/modules';
import { setSetting } from '../../src/inventory/settings';
import { setWebhookSecret } from '../../src/inventory/webhooks';
import { keptMeshKey, sealWithMeshKey } from '../../src/link';
import { localMesh, untilAnswering } from '../../src/processes';
import { Ports } from '../../src/servers/ports';
import { type Benchmark, median } from '../figure';
import { withServers } from '../mesh';

const MODULE = 'tiny';
const NODE = 'bench-node';
const SECRET = 'the-secret-of-the-bench';
const MANIFEST = `module: ${MODULE}
declare: auto
artifacts:
  version: { file: version.out }
build:
  run: cp version version.out
  test: test -s version.out
resources:
  - file: { path: /opt/tiny/version, from: version }
`;
const BY_WEBHOOK = 11;
const BY_POLLING = 5;
const GIVE_UP_MS = 180_000;
/** So that commits do not follow the rhythm of the reading. */
const PAUSE_MS = 3_000;

/** From a commit to its declaration, with a real builder on a real repository, less what the build's own commands took. */
export const deliverOverhead: Benchmark = {
  figures: ['deliver-overhead-webhook-p50', 'deliver-overhead-polling-p50'],
  run: ({ print, say }) =>
    withServers(['temporal', 'postgres', 'rabbitmq', 'registry'], say, async ({ addresses, dir, db }) => {
      const apiPort = await new Ports(dir).free('api');
      const mesh = await localMesh({ dataDir: dir, addresses, apiPort, environment: {}, say });
      try {
        await setSetting(db, 'declareDefault', 'auto');
        await mesh.control.start();
        await untilAnswering(mesh);
        await mesh.builder.start();
        const repository = tinyRepository(dir);
        const first = repository.commit('first');
        await addModule(db, { name: MODULE, repository: repository.url, ref: 'refs/heads/main' });
        await setWebhookSecret(db, MODULE, sealWithMeshKey(keptMeshKey(mesh.places.home), SECRET, webhookSubject(MODULE)));
        await db.query('insert into node (name, broker_user) values ($1, $1)', [NODE]);
        await db.query('insert into placement (module, node) values ($1, $2)', [MODULE, NODE]);
        await overheadOf(db, first);

        const webhook: number[] = [];
        for (let run = 0; run < BY_WEBHOOK; run += 1) {
          const made = repository.commit(`webhook ${run}`);
          await announce(mesh.apiUrl, repository.url);
          webhook.push(await overheadOf(db, made));
          await pause(500);
        }
        say(`by webhook: ${webhook.map((one) => one.toFixed(2)).join(', ')} s`);
        print({ name: 'deliver-overhead-webhook-p50', value: median(webhook), unit: 's', reference: { name: 'aim', value: 1 } });

        const polling: number[] = [];
        for (let run = 0; run < BY_POLLING; run += 1) {
          await pause(PAUSE_MS * (1 + Math.random()));
          polling.push(await overheadOf(db, repository.commit(`polling ${run}`)));
        }
        say(`by polling: ${polling.map((one) => one.toFixed(2)).join(', ')} s`);
        print({ name: 'deliver-overhead-polling-p50', value: median(polling), unit: 's', reference: null });
      } finally {
        await mesh.stop();
      }
    }),
};

interface Made {
  readonly commit: string;
  readonly at: Date;
}

function tinyRepository(dir: string): { readonly url: string; commit(version: string): Made } {
  const folder = path.join(dir, 'tiny');
  mkdirSync(folder);
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', folder, '-c', 'user.name=Bench', '-c', 'user.email=bench@example.org', ...args], {
      encoding: 'utf8',
      timeout: 20_000,
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
    }).trim();
  git('init', '--quiet', '--initial-branch=main');
  writeFileSync(path.join(folder, 'module.yaml'), MANIFEST);
  return {
    url: `file://${folder}`,
    commit(version) {
      writeFileSync(path.join(folder, 'version'), `${version}\n`);
      git('add', '--all');
      git('commit', '--quiet', '--message', version);
      return { at: new Date(), commit: git('rev-parse', 'HEAD') };
    },
  };
}

/** As GitHub would say it. */
async function announce(apiUrl: string, repository: string): Promise<void> {
  const body = JSON.stringify({ ref: 'refs/heads/main', repository: { clone_url: repository } });
  const signature = createHmac('sha256', SECRET).update(body).digest('hex');
  const headers = { 'content-type': 'application/json', 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${signature}` };
  const response = await fetch(`${apiUrl}/hooks/github`, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) });
  if (response.status !== 202) throw new Error(`the event was answered with ${response.status}: ${await response.text()}`);
}

/** In seconds. The store and this process go by the same clock. */
async function overheadOf(db: Db, { commit, at }: Made): Promise<number> {
  const deadline = Date.now() + GIVE_UP_MS;
  for (;;) {
    const [row] = await db.query<{ declaredAt: Date; commandsMs: number }>(
      `select p.declared_at as "declaredAt",
         (select coalesce(sum(value::float8), 0) from jsonb_each_text(b.steps) where key in ('fetch', 'run', 'test')) as "commandsMs"
       from placement p join build b on b.id = p.build_id where p.module = $1 and b.commit = $2`,
      [MODULE, commit],
    );
    if (row !== undefined) return (row.declaredAt.getTime() - at.getTime() - row.commandsMs) / 1_000;
    if (Date.now() > deadline) throw new Error(`${commit} is not declared after ${GIVE_UP_MS / 1_000} s: see the logs of the processes`);
    await pause(50);
  }
}
