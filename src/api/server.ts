import { type FastifyInstance, fastify, LogController } from 'fastify';
import { API_VERSION } from '../schema/api';
import { requireToken } from './auth';
import { boardRoutes } from './board';
import type { ApiDeps } from './deps';
import { examine } from './doctor';
import { eventRoutes } from './events';
import { graphRoutes } from './graph';
import { hookRoutes } from './hooks';
import { instanceRoutes } from './instances';
import { logRoutes } from './log';
import { metricRoutes } from './metrics';
import { moduleRoutes } from './modules';
import { nodeRoutes } from './nodes';
import { answerProblems } from './problems';
import { readingRoutes } from './reading';
import { verbRoutes } from './verbs';
import { verifyRoutes } from './verify';

const BODY_MAX_BYTES = 64 << 10;
/** For a request to arrive whole. */
const REQUEST_TIMEOUT_MS = 20_000;
/** For an answer to be begun; the slowest is an intent that waits for Temporal. */
const HANDLER_TIMEOUT_MS = 30_000;
/** A board's stream says something four times in this. */
const IDLE_TIMEOUT_MS = 60_000;
/** What is being answered when the process ends may take this long. */
const CLOSE_WITHIN_MS = 3_000;
const CONNECTIONS_MAX = 1_000;

/** Not listening yet: the caller says where. Closing it ends the boards' streams and waits for what is being answered. */
export function createApi(deps: ApiDeps): FastifyInstance {
  const app = fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_MAX_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    handlerTimeout: HANDLER_TIMEOUT_MS,
    connectionTimeout: IDLE_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    // A HEAD of the boards' stream would never end.
    exposeHeadRoutes: false,
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  // Connections on which nothing was ever asked, as browsers open them ahead, are not idle by Node's count.
  app.addHook('preClose', async () => void setTimeout(() => app.server.closeAllConnections(), CLOSE_WITHIN_MS).unref());
  app.decorateRequest('who', '');
  answerProblems(app);

  app.get('/healthz', async (_request, reply) => {
    try {
      await deps.db.query('select 1');
      return { isWell: true };
    } catch {
      return await reply.code(503).send({ isWell: false, error: 'the store does not answer' });
    }
  });

  void app.register(
    async (api) => {
      api.addHook('onRequest', requireToken(deps.db));
      api.addHook('onSend', async (_request, reply) => {
        reply.headers({ 'tally-api': API_VERSION, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
      });
      readingRoutes(api, deps);
      graphRoutes(api, deps);
      verifyRoutes(api, deps);
      verbRoutes(api, deps);
      moduleRoutes(api, deps);
      nodeRoutes(api, deps);
      instanceRoutes(api, deps);
      logRoutes(api, deps);
      eventRoutes(api, deps);
      api.get('/doctor', async () => await examine(deps));
    },
    { prefix: '/api/v1' },
  );
  void app.register(async (hooks) => await hookRoutes(hooks, deps));
  void app.register(async (board) => await boardRoutes(board, deps));
  metricRoutes(app, deps);
  return app;
}
