/** Modules that require of one another, and a provider whose node reports: for the tests of what is placed and made. */
import { compare } from '../../src/domain/comparison';
import { assign, type Db, declareBuild, recordNodeBeats, recordReports, type Use } from '../../src/inventory';
import { generateSealKeyPair } from '../../src/link';
import type { NodeReport } from '../../src/schema/messages';
import { A, beat, facts, fitBuild, module, node, report, send, tick, times } from './store';

export const why = { who: 'ada', why: 'test' };
const features = {
  versions: [1],
  shapes: ['file', 'directory', 'archive', 'service', 'action'],
  features: ['secrets', 'undo', 'environmentFile', 'parts'],
};
const { publicKey: sealKey } = generateSealKeyPair();

let count = 0;
/** Names that no other test has. */
export function fresh(): (name: string) => string {
  count += 1;
  const at = count;
  return (name) => `${name}${at}`;
}

export async function built(db: Db, name: string, manifest: object, commit = A): Promise<string> {
  if (commit === A) await module(db, name);
  return fitBuild(db, name, commit, { resources: [], ...manifest });
}

export const declare = (db: Db, name: string, buildId: string, ...nodes: string[]): Promise<number> =>
  declareBuild(db, { module: name, buildId, nodes, by: 'auto' });
export const comparison = async (db: Db, name: string) => compare(await facts(db, name), times);
export const use = (provider: string, requirement: string | null = null, on: string | null = null): Use => ({ provider, requirement, node: on });

/** The node's host reports all that it was sent, or was sent last, as held, but for what is said of some modules. */
let reports = 0;
export async function applyAll(db: Db, on: string, but: Record<string, Partial<NodeReport['modules'][number]>> = {}): Promise<void> {
  const sent = (await send(db, on)) ?? lastSent.get(on);
  if (sent === undefined) throw new Error(`${on} was sent nothing`);
  lastSent.set(on, sent);
  reports += 1;
  const said = report(on, reports, sent);
  await recordReports(db, [{ ...said, modules: said.modules.map((one) => ({ ...one, ...but[one.module] })) }], tick());
}
const lastSent = new Map<string, Parameters<typeof report>[2]>();

export async function host(db: Db, name: string): Promise<void> {
  await node(db, name);
  await recordNodeBeats(db, [beat(name, { reads: features, sealKey })], tick(), times);
}

const postgres = {
  resources: [{ service: { name: 'postgres', run: ['postgres'] } }],
  provides: [
    {
      instantiation: 'database',
      parameters: { encoding: { default: 'UTF8' } },
      secrets: ['password'],
      resources: [
        { file: { path: '/etc/pg/${instance.name}', mode: '0600', content: '${secret.password} ${with.encoding}' } },
        {
          action: {
            name: 'make-${instance.name}',
            run: ['make', '${instance.name}'],
            unless: ['is', '${instance.name}'],
            undo: ['drop', '${instance.name}'],
          },
        },
      ],
      gives: { host: '${node.address}', name: '${instance.name}', password: '${secret.password}' },
    },
  ],
};
export const notes = {
  requires: [{ instantiation: 'database', as: 'db' }],
  resources: [{ file: { path: '/etc/notes', mode: '0600', content: '${bind.db.host} ${bind.db.name} ${bind.db.password}' } }],
};

/** A provider on alpha that is applied, and its consumer, not placed yet; in a mesh where nobody else provides a database. */
export async function provided(
  db: Db,
  n: (name: string) => string,
  consumer: object = notes,
): Promise<{ pg: string; app: string; alpha: string; beta: string; build: string; pgBuild: string }> {
  const rename = (value: object): object =>
    JSON.parse(JSON.stringify(value).replaceAll('"instantiation":"database"', `"instantiation":"${n('database')}"`)) as object;
  const [pg, app, alpha, beta] = [n('pg'), n('app'), n('alpha'), n('beta')];
  const pgBuild = await built(db, pg, rename(postgres));
  const build = await built(db, app, rename(consumer));
  await host(db, alpha);
  await host(db, beta);
  await db.query(`update node set facts = '{"address":"10.0.0.1"}' where name = $1`, [alpha]);
  await assign(db, pg, alpha, why);
  await declare(db, pg, pgBuild, alpha);
  await applyAll(db, alpha);
  return { pg, app, alpha, beta, build, pgBuild };
}

interface FileSpec {
  content?: string;
  secrets?: Record<string, { credential: string; version: number; sealed: string }>;
}

export async function fileOf(db: Db, on: string, path: string): Promise<FileSpec> {
  const [row] = await db.query<{ content: { resources: Array<{ spec: FileSpec & { path?: string } }> } }>(
    'select content from declaration where node = $1 order by sequence desc limit 1',
    [on],
  );
  return row?.content.resources.find((one) => one.spec.path === path)?.spec ?? {};
}
