/** Nodes: each gets an account of its own on the broker, and a credential file that only its host needs. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { addNode, getMesh, listNodes, recordRenewal, removeNode, setFacts, trustKey } from '../inventory';
import { type AddedNodeAnswer, addNodeBody, type DoneAnswer, removeBody, setFactsBody } from '../schema/api';
import type { ApiDeps } from './deps';
import { Problem, parse } from './problems';
import { unknownNode } from './reading';

interface Named {
  Params: { name: string };
}

export function nodeRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const { db, access, config } = deps;

  async function makeAccess(node: string): Promise<{ readonly user: string; readonly file: string }> {
    const { user, credentials } = await access.make(node);
    const { name: mesh } = await getMesh(db);
    const file = resolve(config.home, 'nodes', `${node}.json`);
    await writePrivate(file, `${JSON.stringify({ mesh, node, ...credentials }, null, 2)}\n`);
    return { user, file };
  }

  async function known(name: string): Promise<void> {
    if (!(await listNodes(db)).some((one) => one.name === name)) throw await unknownNode(deps, name);
  }

  app.post('/nodes', async (request, reply): Promise<AddedNodeAnswer> => {
    const { node, site, facts } = parse(addNodeBody, request.body);
    // Before the account: making it again would shut the running host out.
    if ((await listNodes(db)).some((one) => one.name === node)) throw new Problem(409, `there is a node ${node} already: tally node show ${node}`);
    const { user, file } = await makeAccess(node);
    // The row last: whatever failed before it can simply be asked again.
    await addNode(db, { name: node, site, facts, brokerUser: user });
    reply.code(201);
    return {
      says: `${node} is added; its credentials lie in ${file}`,
      node,
      credentialFile: file,
      next: `tally host --credentials ${file} --root / --state /var/lib/tally-host`,
    };
  });

  app.post<Named>('/nodes/:name/facts', async (request): Promise<DoneAnswer> => {
    const { facts } = parse(setFactsBody, request.body);
    const { name } = request.params;
    await known(name);
    await setFacts(db, name, facts);
    return {
      says: `${name}: ${Object.entries(facts)
        .map(([key, value]) => (value === '' ? `${key} is gone` : `${key} is ${value}`))
        .join(', ')}`,
      isUnderWay: true,
    };
  });

  app.post<Named>('/nodes/:name/trust', async (request): Promise<DoneAnswer> => {
    const { why } = parse(removeBody, request.body);
    const { name } = request.params;
    await known(name);
    await trustKey(db, name, { who: request.who, why });
    return {
      says: `the key that ${name} came with last is trusted: its next beat counts, and it is told again what it should hold`,
      isUnderWay: true,
    };
  });

  app.post<Named>('/nodes/:name/renew', async (request): Promise<DoneAnswer> => {
    const { why } = parse(removeBody, request.body);
    const { name } = request.params;
    await known(name);
    const { user, file } = await makeAccess(name);
    await recordRenewal(db, name, user, { who: request.who, why });
    return { says: `${name} has a new account; its old credentials are void: start its host with ${file}`, isUnderWay: true };
  });

  app.delete<Named>('/nodes/:name', async (request): Promise<DoneAnswer> => {
    const { why } = parse(removeBody, request.body);
    const { name } = request.params;
    await known(name);
    await removeNode(db, name, { who: request.who, why }, (brokerUser) => access.remove(name, brokerUser));
    await rm(join(config.home, 'nodes', `${name}.json`), { force: true });
    return { says: `${name} is forgotten and its account is gone; what runs there goes on running`, isUnderWay: true };
  });
}

/** Whole, and for its owner alone from the first byte. */
async function writePrivate(file: string, text: string): Promise<void> {
  await mkdir(join(file, '..'), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.part`;
  await writeFile(draft, text, { mode: 0o600, flush: true });
  await rename(draft, file);
}
