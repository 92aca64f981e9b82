/** Providers as an operator meets them: refusals at assign, a choice, what is made, new secrets. */
import { declareBuild, recordNodeBeats } from '../../src/inventory';
import { generateSealKeyPair } from '../../src/link';
import { moduleAnswer, nodeAnswer } from '../../src/schema/api';
import { instanceList, instanceRow } from '../../src/schema/wiringApi';
import { A, beat, fitBuild, module, node, send, tick, times } from '../inventory/store';
import { apiOfFile } from '../support/api';
import { asking, type Ran, runTally } from '../support/command';

const api = apiOfFile();
const tally = (...words: string[]): Promise<Ran> => runTally(words, { env: asking(api) });

const provides = { provides: [{ instantiation: 'database', secrets: ['password'], gives: { password: '${secret.password}' } }] };

test('an operator is told what is missing, chooses among several, sees what is made and rotates it', async () => {
  const { db } = api;
  const reads = {
    versions: [1],
    shapes: ['file', 'directory', 'archive', 'service', 'action'],
    features: ['secrets', 'undo', 'environmentFile', 'parts'],
  };
  for (const name of ['alpha', 'beta']) {
    await node(db, name);
    await recordNodeBeats(db, [beat(name, { reads, sealKey: generateSealKeyPair().publicKey })], tick(), times);
  }
  const builds = new Map<string, string>();
  for (const [name, manifest] of [
    ['pg', provides],
    ['pg2', provides],
    ['notes', { requires: [{ instantiation: 'database', as: 'db' }], claims: [{ resource: 'port/80', scope: 'node' }] }],
    ['other', { claims: [{ resource: 'port/80', scope: 'node' }] }],
  ] as const) {
    await module(db, name);
    builds.set(name, await fitBuild(db, name, A, { ...manifest, resources: [] }));
  }
  expect(await tally('instance', 'list')).toEqual({
    status: 0,
    out: 'nothing is made for a module yet: one that requires an instantiation has it made\n',
    err: '',
  });
  expect(await tally('assign', 'notes', 'beta')).toEqual({
    status: 2,
    out: '',
    err: 'notes is not placed on beta: notes requires database (as db), which nothing within reach of beta provides: pg or pg2 would, as in tally assign pg NODE\n',
  });
  for (const name of ['pg', 'pg2']) await tally('assign', name, 'alpha');
  expect(await tally('assign', 'notes', 'beta')).toMatchObject({
    status: 2,
    err: expect.stringContaining('which pg on alpha and pg2 on alpha provide: choose one, as in tally assign notes beta --use db=pg@alpha'),
  });
  expect(await tally('assign', 'notes', 'beta', '--use', 'db=')).toMatchObject({ status: 2, err: expect.stringContaining('REQUIREMENT=PROVIDER') });
  expect(await tally('assign', 'notes', 'beta', '--use', 'db=pg2@alpha')).toMatchObject({
    status: 0,
    out: 'notes is placed on beta, db by pg2 on alpha\n',
  });
  expect(await tally('assign', 'notes', 'beta', '--use', 'db=pg')).toMatchObject({
    status: 2,
    err: expect.stringContaining('provided by pg2 on alpha already'),
  });
  expect(await tally('assign', 'other', 'beta')).toMatchObject({ status: 2, err: expect.stringContaining('other and notes both claim port/80') });
  expect(await tally('unassign', 'pg2', 'alpha')).toMatchObject({ status: 2, err: expect.stringContaining('notes on beta requires') });

  expect((await tally('instance', 'list')).out).toMatch(/^notes-db {2}not made yet · db of notes on beta · database by pg2 on alpha\n$/);
  await declareBuild(db, { module: 'pg2', buildId: builds.get('pg2') ?? '', nodes: ['alpha'], by: 'auto' });
  await send(db, 'alpha');
  expect(instanceList.parse(JSON.parse((await tally('instance', 'list', '--json')).out)).instances).toMatchObject([
    { name: 'notes-db', isMade: true },
  ]);
  const shown = await tally('instance', 'show', 'notes-db');
  expect(shown.out).toMatch(/^notes-db {2}database\n\nfor +db of notes on beta\nby +pg2 on alpha\nmade +made /);
  expect(shown.out).toMatch(/secret password +version 1 of /);
  expect(await tally('instance', 'rotate', 'notes-db', '--why', 'leaked')).toMatchObject({
    status: 0,
    out: 'notes-db has new secrets: pg2 on alpha is told them now, and beta once they are in force there\n',
  });
  const row = instanceRow.parse(JSON.parse((await tally('instance', 'show', 'notes-db', '--json')).out));
  expect(row.secrets).toMatchObject([{ name: 'password', version: 2 }]);
  expect(await tally('instance', 'rotate', 'notes-bd', '--why', 'leaked')).toMatchObject({
    status: 2,
    err: expect.stringContaining('did you mean notes-db?'),
  });

  expect((await tally('module', 'show', 'notes')).out).toMatch(
    /requires\n {2}beta {2}database as db {2}pg2 on alpha · notes-db outstanding · chosen by ada\n/,
  );
  expect((await tally('node', 'show', 'beta')).out).toMatch(/claims\n {2}notes +port\/80 +one in the node\n/);
  expect((await tally('node', 'show', 'alpha')).out).toMatch(/provides\n {2}pg +database +within the mesh\n {2}pg2 +database +within the mesh\n/);
  expect(moduleAnswer.parse((await api.call('GET', '/api/v1/modules/notes')).body).wiring.bindings).toHaveLength(1);
  expect(nodeAnswer.parse((await api.call('GET', '/api/v1/nodes/alpha')).body).wiring.offers).toHaveLength(2);
}, 90_000);
