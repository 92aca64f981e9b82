import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { pino } from 'pino';
import { createApi } from '../../src/api';
import { defaultTimes } from '../../src/domain/times';
import { addToken, type Db } from '../../src/inventory';
import { createRegistryClient } from '../../src/registry';
import { packageRoot } from '../../src/servers/places';
import { run } from '../../src/servers/run';
import { type Bench, type Benchmark, elapsedMs, median } from '../figure';
import { seedModules, withServers } from '../mesh';

const MODULES = 1_000;
const INPUTS = 3;
const RUNS = 11;
const WITHIN_MS = 60_000;
const INSTALL_WITHIN_MS = 300_000;

/** `tally plan` for a change at the root, as a process with its API and PostgreSQL, beside what Turborepo would run on the same graph. */
export const planOverTurbo: Benchmark = {
  figures: ['plan-over-turbo'],
  run: ({ print, peers, say }) =>
    withServers(['postgres'], say, async ({ db, dir }) => {
      await seedModules(db, MODULES);
      await seedEdges(db);
      const api = await startApi(db, dir);
      try {
        const tally = [process.execPath, path.join(packageRoot(), 'bin', 'tally.js'), 'plan'];
        const env = { ...process.env, TALLY_URL: api.url, TALLY_TOKEN: api.token };
        const { stdout } = await run(tally[0] ?? '', tally.slice(1), { timeoutMs: WITHIN_MS, env });
        if (!stdout.includes(`${MODULES} steps`)) throw new Error(`the plan does not reach all ${MODULES} modules: ${stdout.slice(0, 300)}`);
        // That something is to be done is its answer, by which it ends with 1.
        const value = await secondsOf(tally, env, true);
        const references = peers ? await turbo(dir, say) : [{ name: 'aim', value: 0.29 }];
        for (const reference of references) print({ name: 'plan-over-turbo', value, unit: 's', reference });
      } finally {
        await api.close();
      }
    }),
};

/** By number: earlier modules, spread so that a change of the first reaches all. */
function inputsOf(number: number): number[] {
  if (number === 0) return [];
  const inputs = [Math.floor((number - 1) / INPUTS), (number * 7) % number, (number * 13) % number];
  return [...new Set(inputs)];
}

const nameOf = (number: number): string => `m${String(number).padStart(5, '0')}`;

async function seedEdges(db: Db): Promise<void> {
  const edges = Array.from({ length: MODULES }, (_, number) =>
    inputsOf(number).map((input) => ({ module: nameOf(number), input: nameOf(input) })),
  ).flat();
  await db.query(
    `insert into build_edge (module, input, artifact, language, name, is_test, file, line)
     select module, input, input, 'go', 'example.com/' || input, false, 'main.go', 3 from jsonb_to_recordset($1::jsonb) e (module text, input text)`,
    [JSON.stringify(edges)],
  );
  await db.query(`update module set next = 'build', situation = 'building', in_step = false, reason = 'source moved' where name = $1`, [nameOf(0)]);
  await db.query('analyze');
}

async function startApi(db: Db, home: string): Promise<{ url: string; token: string; close: () => Promise<void> }> {
  const away = async (): Promise<never> => {
    throw new Error('a plan changes nothing');
  };
  const app = createApi({
    db,
    temporal: { nudge: away, update: away },
    log: pino({ level: 'silent' }),
    meshKey: Buffer.alloc(32),
    config: { publicUrl: 'http://bench.invalid', temporalUiUrl: null, temporalNamespace: 'default', home, times: defaultTimes },
    registry: createRegistryClient({ url: 'http://127.0.0.1:9' }),
    access: { make: away, remove: away },
    onEvent: away,
    probes: [],
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, token: await addToken(db, 'bench'), close: async () => await app.close() };
}

/** A monorepo of as many packages with the same dependencies. */
async function turbo(dir: string, say: Bench['say']): Promise<Array<{ name: string; value: number }>> {
  const root = path.join(dir, 'monorepo');
  const json = (file: string, value: object): void => writeFileSync(path.join(root, file), `${JSON.stringify(value, null, 2)}\n`);
  mkdirSync(path.join(root, 'packages'), { recursive: true });
  for (let number = 0; number < MODULES; number += 1) {
    mkdirSync(path.join(root, 'packages', nameOf(number)));
    const dependencies = Object.fromEntries(inputsOf(number).map((input) => [nameOf(input), '*']));
    json(`packages/${nameOf(number)}/package.json`, { name: nameOf(number), version: '1.0.0', scripts: { build: 'true' }, dependencies });
  }
  json('package.json', { name: 'bench', private: true, workspaces: ['packages/*'], packageManager: 'npm@10.0.0' });
  json('turbo.json', { tasks: { build: { dependsOn: ['^build'] } } });
  writeFileSync(path.join(root, '.gitignore'), 'node_modules\n.turbo\n');
  say('turbo is installed');
  const installed = await run('npm', ['install', '--prefix', path.join(dir, 'turbo'), '--no-audit', '--no-fund', 'turbo@2'], {
    timeoutMs: INSTALL_WITHIN_MS,
  });
  if (!installed.ok) throw new Error(`turbo could not be installed: ${installed.stderr.trim()}`);
  const git = ['-C', root, '-c', 'user.name=bench', '-c', 'user.email=bench@example.invalid'];
  for (const words of [
    ['init', '-q', '-b', 'main'],
    ['add', '-A'],
    ['commit', '-q', '-m', 'all'],
    ['commit', '-q', '--allow-empty', '-m', 'more'],
  ]) {
    const done = await run('git', [...git, ...words], { timeoutMs: WITHIN_MS });
    if (!done.ok) throw new Error(`git ${words[0]}: ${done.stderr}`);
  }
  const program = path.join(dir, 'turbo', 'node_modules', '.bin', 'turbo');
  const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1', TURBO_NO_UPDATE_NOTIFIER: '1', TURBO_SCM_BASE: 'HEAD~1' };
  return [
    { name: 'turbo run build --dry-run', value: await secondsOf([program, '--cwd', root, 'run', 'build', '--dry-run'], env, false) },
    { name: 'turbo ls --affected', value: await secondsOf([program, '--cwd', root, 'ls', '--affected'], env, false) },
  ];
}

async function secondsOf([command = '', ...args]: readonly string[], env: NodeJS.ProcessEnv, mayEndBadly: boolean): Promise<number> {
  const runs: number[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    runs.push(
      await elapsedMs(async () => {
        const { ok, stdout, stderr } = await run(command, args, { timeoutMs: WITHIN_MS, env });
        if (!ok && !mayEndBadly) throw new Error(`${command} ${args.join(' ')}: ${stderr || stdout}`);
      }),
    );
  }
  return median(runs) / 1_000;
}
