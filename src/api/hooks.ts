/**
 * Webhooks. They only make it fast: an event that is proven to be its forge's makes Tally read git again, and nothing in
 * it is believed, not even the commit. Whatever is not proven changes nothing.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { listModules, webhookModules } from '../inventory';
import { openWithMeshKey } from '../link';
import type { ApiDeps } from './deps';
import { webhookSubject } from './modules';
import { Problem } from './problems';
import { canonicalRepository, repositoriesOf } from './repositories';
import { sharedReading } from './shared';
import { type Forge, forges } from './signatures';

const BODY_MAX_BYTES = 1 << 20;
/** However many events come, the store is asked for the modules once in this time. */
const INDEX_AGE_MS = 1_000;

interface Tracked {
  readonly modules: string[];
  /** Of those with a webhook: the secret, sealed. */
  readonly secrets: Array<{ readonly module: string; readonly sealed: string }>;
}

export async function hookRoutes(app: FastifyInstance, deps: ApiDeps): Promise<void> {
  const index = repositoryIndex(deps);
  app.removeAllContentTypeParsers();
  // The signature is of the bytes as they came.
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: BODY_MAX_BYTES }, (_request, body, done) => done(null, body));

  for (const forge of forges) {
    app.post(`/hooks/${forge.name}`, { bodyLimit: BODY_MAX_BYTES }, async (request, reply) => {
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      const event = forge.event(request.headers);
      if (event === null) throw new Problem(400, `this is no event of ${forge.name}: its header that names the event is missing`);
      const proof = forge.proof(request.headers);
      if (proof === null)
        throw new Problem(
          401,
          `the event is not ${forge.name === 'gitlab' ? 'accompanied by its token' : 'signed with SHA-256'}: set the secret that tally module webhook prints`,
        );
      const repositories = repositoriesOf(payloadOf(request, body));
      if (repositories.size === 0) throw new Problem(400, 'the event names no repository');
      const tracked = await index(repositories);
      if (tracked.modules.length === 0) throw new Problem(404, 'no module tracks the repository that the event names');
      if (!isProvenBy(tracked, forge, proof, body, deps))
        throw new Problem(401, 'the secret is not that of a module of this repository: tally module webhook prints it');
      if (forge.pings.has(event)) return { says: 'pong: address and secret are right', modules: tracked.modules };
      if (!forge.moves.has(event)) return { says: 'nothing to do for this event', modules: [] };
      await deps.onEvent(tracked.modules);
      request.log.info({ forge: forge.name, event, modules: tracked.modules }, 'an event: git is read again');
      return await reply.code(202).send({ says: 'git is read again', modules: tracked.modules });
    });
  }
}

/** Every secret is tried, so that the time says nothing about which one was right. */
function isProvenBy(tracked: Tracked, forge: Forge, proof: string, body: Buffer, { meshKey }: ApiDeps): boolean {
  return tracked.secrets
    .map(({ module, sealed }) => forge.isProven(proof, openWithMeshKey(meshKey, sealed, webhookSubject(module)), body))
    .includes(true);
}

/** JSON, or a form whose field `payload` is JSON, as GitHub sends unless told otherwise. */
function payloadOf(request: FastifyRequest, body: Buffer): unknown {
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json' && type !== 'application/x-www-form-urlencoded')
    throw new Problem(415, 'an event is JSON: set the content type application/json');
  const text = type === 'application/json' ? body.toString('utf8') : (new URLSearchParams(body.toString('utf8')).get('payload') ?? '');
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(400, 'the event is not JSON');
  }
}

/** Gives what is tracked under any of these addresses; one repository may be tracked by several modules. */
function repositoryIndex({ db }: ApiDeps): (repositories: ReadonlySet<string>) => Promise<Tracked> {
  const index = sharedReading(INDEX_AGE_MS, read);

  async function read(): Promise<Map<string, Tracked>> {
    const [modules, hooks] = await Promise.all([listModules(db), webhookModules(db)]);
    const secrets = new Map(hooks.map((hook) => [hook.module, hook.sealedSecret]));
    const byRepository = new Map<string, Tracked>();
    for (const { name, repository } of modules) {
      const key = canonicalRepository(repository);
      const tracked = byRepository.get(key) ?? { modules: [], secrets: [] };
      const sealed = secrets.get(name);
      tracked.modules.push(name);
      if (sealed !== undefined) tracked.secrets.push({ module: name, sealed });
      byRepository.set(key, tracked);
    }
    return byRepository;
  }

  return async (repositories) => {
    const byRepository = await index();
    const found = [...repositories].flatMap((repository) => byRepository.get(repository) ?? []);
    return { modules: [...new Set(found.flatMap((one) => one.modules))].sort(), secrets: [...new Set(found)].flatMap((one) => one.secrets) };
  };
}
