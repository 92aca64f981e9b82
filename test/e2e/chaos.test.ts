/**
 * Invariant 10 as a whole: commits arrive while control plane, builder and a host are killed at random moments, over and
 * over; then everything comes to rest, and every invariant holds. The seed is printed, and CHAOS_SEED repeats a run.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Ports } from '../../src/servers/ports';
import { eventually } from '../support/eventually';
import { checkInvariants } from '../support/invariants';
import { forgeReports } from './forge';
import { type WholeMesh, wholeMesh } from './mesh';
import { observe, type Watched } from './observe';
import { type QuickModule, quickModule } from './quickModule';
import { dice } from './random';

const NODES = ['alpha', 'beta'];
const MODULES = ['web', 'docs', 'menu'];
const TURBULENCE_MS = 50_000;
const REST_MS = 90_000;

const TIMES = {
  TALLY_TIMES_READ_REFS: '2000',
  TALLY_TIMES_SWEEP: '2000',
  TALLY_TIMES_HOST_BEAT: '1000',
  TALLY_TIMES_HOST_AWAY: '3000',
  TALLY_TIMES_BUILDER_BEAT: '1000',
  TALLY_TIMES_BUILDER_LOST: '5000',
  TALLY_TIMES_UNPUBLISHED: '5000',
  TALLY_TIMES_UNCLAIMED: '10000',
  TALLY_TIMES_REQUEST_PASS: '1000',
  TALLY_TIMES_RETRY_FIRST: '500',
  TALLY_TIMES_RETRY_MOST: '4000',
  TALLY_TIMES_SERVICE_SETTLE: '500',
};

const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const { below, oneOf, chance } = dice(seed);

let whole: WholeMesh;
let weather: { server: Server; isFair: boolean };
let modules: QuickModule[];
let watched: Watched;

beforeAll(async () => {
  weather = { server: createServer((_request, response) => response.writeHead(weather.isFair ? 200 : 503).end()), isFair: true };
  await new Promise<void>((resolve) => weather.server.listen(0, '127.0.0.1', resolve));
  const { port } = weather.server.address() as AddressInfo;
  whole = await wholeMesh(TIMES);
  modules = MODULES.map((name) => quickModule(join(whole.dataDir, 'git'), name, `http://127.0.0.1:${port}/`));
  watched = await populate();
}, 60_000);

afterAll(async () => {
  await whole?.close();
  weather?.server.close();
}, 60_000);

async function populate(): Promise<Watched> {
  const ports = new Ports(whole.dataDir);
  const foreign = NODES.flatMap((node) => [
    { node, path: 'etc/theirs', content: 'written by hand' },
    { node, path: 'etc/web/theirs', content: 'beside a declared file' },
  ]);
  for (const { node, path, content } of foreign) {
    const file = join(whole.local.places.nodes, node, 'root', path);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, content);
  }
  for (const { name, repository, commit } of modules) {
    commit('good');
    await whole.tally('module', 'add', name, repository);
  }
  for (const node of NODES) {
    const facts: string[] = [];
    for (const { name } of modules) facts.push('--set', `${name}.port=${await ports.free(`${node}-${name}`)}`);
    await whole.tally('node', 'add', node, ...facts);
    await whole.local.host(node).start();
    for (const { name } of modules) await whole.tally('assign', name, node);
  }
  return { whole, modules, nodes: NODES, foreign, port: (node, module) => ports.last(`${node}-${module}`) ?? 0 };
}

/** Throws with what the modules that are not at rest say of themselves, and the requests that are open. */
async function expectRest(): Promise<void> {
  const rows = await whole.db.query<{ name: string; head: string; situation: string | null; isInStep: boolean }>(
    `select m.name, m.head_commit as head, m.situation, m.in_step as "isInStep", m.line, m.reason, m.trouble_reason, m.read_at, m.next_read_at, m.facts_version, m.compared_version,
       (select json_agg(json_build_object('kind', r.kind, 'state', r.state, 'attempt', r.attempt, 'trouble', r.trouble_reason)) from request r
        where r.module = m.name and r.state in ('requested', 'published', 'taken')) as open
     from module m`,
  );
  const restless = rows.flatMap((row) => {
    const module = modules.find((one) => one.name === row.name);
    const isBroken = module?.commits.find(({ commit }) => commit === row.head)?.isBroken === true;
    const isAtRest = row.head === module?.head() && (isBroken ? row.situation === 'failed' : row.isInStep);
    return isAtRest ? [] : [{ ...row, wanted: module?.head(), now: new Date() }];
  });
  if (restless.length > 0) throw new Error(JSON.stringify(restless, null, 1));
}

test(
  `killed over and over, the mesh comes back in step and every invariant holds (CHAOS_SEED=${seed})`,
  async () => {
    await eventually(expectRest, { timeoutMs: REST_MS, everyMs: 250 });
    const victims = [whole.local.control, whole.local.builder, ...NODES.map((node) => whole.local.host(node))];
    const ends = Date.now() + TURBULENCE_MS;
    while (Date.now() < ends) {
      // The pauses are the turbulence itself; nothing is waited for by them.
      await pause(300 + below(1_500));
      if (chance(0.6)) oneOf(modules).commit(chance(0.2) ? 'broken' : 'good');
      if (chance(0.5)) oneOf(victims).crash();
      if (chance(0.2)) weather.isFair = !weather.isFair;
      if (chance(0.2)) await forgeReports(whole, NODES);
    }
    weather.isFair = true;
    await eventually(expectRest, { timeoutMs: REST_MS, everyMs: 250 });
    // Queues and processes come to rest a moment after the facts.
    await eventually(async () => checkInvariants(await observe(watched)).length === 0, { timeoutMs: 15_000, everyMs: 500 }).catch(() => undefined);
    expect(checkInvariants(await observe(watched))).toEqual([]);
    expect(whole.said.length).toBeGreaterThan(5);
  },
  TURBULENCE_MS + 2 * REST_MS + 30_000,
);
