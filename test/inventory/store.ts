/** A migrated database of one test file, and the steps that most tests begin with. */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { PlacementFacts } from '../../src/domain/facts';
import { defaultTimes } from '../../src/domain/times';
import {
  addModule,
  addNode,
  assign,
  claimRequest,
  type Db,
  declareBuild,
  markPublished,
  migrate,
  openBuild,
  openInspection,
  openInventory,
  prepareSend,
  readFacts,
  recordAnswer,
  recordReading,
  recordSent,
} from '../../src/inventory';
import { createSealing } from '../../src/link';
import type { Answer, NodeBeat, NodeReport } from '../../src/schema/messages';
import { freshDatabase } from '../support/servers';

export const times = defaultTimes;
export const digest = (value: unknown): string =>
  `sha256:${createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest('hex')}`;
export const deriving = { digest, sealing: createSealing(Buffer.alloc(32, 7)) };
export const commitOf = (letter: string): string => letter.repeat(40);
export const A = commitOf('a');
export const B = commitOf('b');
export const closureOf = (commit: string): string => digest({ commit, inputs: [] });

let clock = Date.now();
/** Each reading of it is a second later, so that since and order are told apart. */
export function tick(ms = 1_000): Date {
  clock += ms;
  return new Date(clock);
}

export async function openStore(): Promise<{ db: Db; url: string }> {
  const url = await freshDatabase();
  await migrate(url);
  return { db: openInventory(url, { max: 24 }), url };
}

const manifestOf = (name: string) => ({ declare: 'auto', resources: [{ file: { path: `/etc/${name}/\${node.name}.json`, content: '{}' } }] });

const base = { v: 1 as const, attempt: 1, builder: 'builder-1', startedAt: '2026-11-29T12:00:00.000Z', endedAt: '2026-11-29T12:00:01.000Z' };

export const valid = (request: string, manifest: object): Answer => ({
  ...base,
  request,
  kind: 'inspect',
  outcome: 'valid',
  manifest: manifest as Record<string, unknown>,
  notes: [],
});

export function fitAnswer(request: string, changes: Partial<Extract<Answer, { outcome: 'fit' }>> = {}): Answer {
  const artifacts = [{ name: 'out', kind: 'archive' as const, repository: 'm/out', digest: digest(request), blob: digest(request), size: 1 }];
  return { ...base, request, kind: 'build', outcome: 'fit', artifacts, inputs: [], provenance: null, log: null, steps: {}, ...changes };
}

export const failed = (request: string, changes: Partial<Extract<Answer, { outcome: 'failed' }>> = {}): Answer => ({
  ...base,
  request,
  kind: 'build',
  outcome: 'failed',
  step: 'test',
  reason: '1 of 14 tests',
  inputs: [],
  log: null,
  steps: {},
  ...changes,
});

export const environment = (request: string, attempt = 1, reason = 'disk is full'): Answer => ({
  ...base,
  request,
  attempt,
  kind: 'build',
  outcome: 'environment',
  step: 'fetch',
  reason,
  log: null,
  steps: {},
});

export async function module(db: Db, name: string): Promise<void> {
  await addModule(db, { name, repository: `file:///${name}.git`, ref: 'main' });
}

export const read = (db: Db, name: string, commit: string): Promise<void> => recordReading(db, name, { kind: 'head', commit }, tick(), times);

export async function inspect(db: Db, name: string, commit: string, manifest: object = {}): Promise<void> {
  const id = await openInspection(db, name, commit);
  if (id !== null) await recordAnswer(db, valid(id, { module: name, ...manifestOf(name), ...manifest }), tick(), times);
}

export async function requestBuild(db: Db, name: string, commit: string): Promise<string> {
  const id = await openBuild(db, { module: name, commit, closure: closureOf(commit), platform: 'linux-amd64', askedBy: null });
  if (id === null) throw new Error(`no build of ${name} at ${commit} can be opened`);
  return id;
}

export async function takeBuild(db: Db, id: string, attempt = 1, builder = 'builder-1', now = tick()): Promise<void> {
  await markPublished(db, id, attempt);
  const reply = await claimRequest(db, { v: 1, request: id, attempt, builder, platform: 'linux-amd64' }, now);
  if (reply.answer !== 'go') throw new Error(reply.reason);
}

let modules = 0;

/** A module of its own for each test, its head read and inspected. */
export async function freshModule(db: Db): Promise<string> {
  modules += 1;
  const name = `m${modules}`;
  await module(db, name);
  await read(db, name, A);
  await inspect(db, name, A);
  return name;
}

/** The head read, inspected and built fit; the build's id. */
export async function fitBuild(db: Db, name: string, commit: string, manifest: object = {}): Promise<string> {
  await read(db, name, commit);
  await inspect(db, name, commit, manifest);
  const id = await requestBuild(db, name, commit);
  await recordAnswer(db, fitAnswer(id), tick(), times);
  return id;
}

export async function node(db: Db, name: string, ...modules: string[]): Promise<void> {
  await addNode(db, { name, site: 'home', facts: {}, brokerUser: `node-${name}` });
  for (const one of modules) await assign(db, one, name, { who: 'ada', why: 'test' });
}

export async function facts(db: Db, name: string, now = tick()): Promise<NonNullable<Awaited<ReturnType<typeof readFacts>>>> {
  const found = await readFacts(db, name, now, times);
  if (found === null) throw new Error(`no facts of ${name}`);
  return found;
}

/** Prepared, and confirmed by the broker. */
export async function send(db: Db, name: string): Promise<{ sequence: number; digest: string; modules: Record<string, string> } | null> {
  const prepared = await prepareSend(db, name, deriving, tick());
  if (prepared.kind !== 'send') return null;
  const { declaration } = prepared;
  await recordSent(db, name, declaration.sequence, declaration.digest, tick());
  const modules = Object.fromEntries(
    Object.keys(declaration.builds).map((one) => [one, digest(declaration.resources.filter((resource) => resource.module === one))]),
  );
  return { sequence: declaration.sequence, digest: declaration.digest, modules };
}

interface Said {
  readonly sequence: number;
  readonly digest: string;
  readonly modules: Record<string, string>;
}

/** `failing`: the resources by module that failed; the others are held. */
export function report(
  name: string,
  number: number,
  sent: Said,
  failing: Record<string, string[]> = {},
  changes: Partial<NodeReport> = {},
): NodeReport {
  return {
    v: 1,
    type: 'report',
    node: name,
    epoch: 'e1',
    number,
    at: '2026-11-29T12:00:00.000Z',
    declaration: { sequence: sent.sequence, digest: sent.digest },
    modules: Object.entries(sent.modules).map(([one, of]) => ({
      module: one,
      digest: of,
      state: failing[one] === undefined ? ('held' as const) : ('failed' as const),
      failures: (failing[one] ?? []).map((resource) => ({ resource, message: `exit status 203, report ${number}` })),
      changes: [],
    })),
    removed: [],
    refused: null,
    ...changes,
  };
}

let placements = 0;

/** A module declared on one node of its own. */
export async function declared(db: Db, manifest: object = {}): Promise<{ name: string; on: string; build: string }> {
  placements += 1;
  const [name, on] = [`d${placements}`, `n${placements}`];
  await module(db, name);
  const build = await fitBuild(db, name, A, manifest);
  await node(db, on, name);
  expect(await declareBuild(db, { module: name, buildId: build, nodes: [on], by: 'auto' })).toBe(1);
  return { name, on, build };
}

export function beat(name: string, changes: Partial<NodeBeat> = {}): NodeBeat {
  return {
    v: 1,
    type: 'beat',
    node: name,
    epoch: 'e1',
    at: '2026-11-29T12:00:00Z',
    publicKey: `key of ${name}`,
    hostVersion: '1',
    reads: { versions: [1], shapes: ['file', 'directory', 'archive', 'service', 'action'] },
    received: null,
    applied: null,
    reportNumber: 0,
    ...changes,
  };
}

export async function placement(db: Db, name: string): Promise<PlacementFacts> {
  const [found] = (await facts(db, name)).placements;
  if (found === undefined) throw new Error(`${name} is placed nowhere`);
  return found;
}
