/** The board's page and how a browser comes to its token: a form, and a cookie that no script can read. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Asset, boardAssets } from '../board';
import { whoIs } from '../inventory';
import { loginBody } from '../schema/api';
import { clearCookie, cookieToken, setCookie } from './auth';
import type { ApiDeps } from './deps';

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-cache',
};

const LOGIN_BODY_MAX_BYTES = 4_096;

export async function boardRoutes(app: FastifyInstance, { db, config }: ApiDeps): Promise<void> {
  const assets = boardAssets();
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string', bodyLimit: LOGIN_BODY_MAX_BYTES }, (_request, body, done) =>
    done(null, Object.fromEntries(new URLSearchParams(String(body)))),
  );

  const show = async (reply: FastifyReply, asset: Asset, status = 200): Promise<FastifyReply> =>
    await reply.code(status).headers(HEADERS).type(asset.type).send(asset.text);

  app.get('/', async (request, reply) => {
    const token = cookieToken(request);
    if (token === null || (await whoIs(db, token)) === null) return await reply.redirect('/login', 303);
    return await show(reply, assets.page);
  });
  app.get('/login', async (_request, reply) => await show(reply, assets.login));
  app.post('/login', async (request, reply) => {
    const parsed = loginBody.safeParse(request.body);
    const token = parsed.success ? parsed.data.token.trim() : '';
    if (token === '' || (await whoIs(db, token)) === null) return await show(reply, assets.refused, 401);
    setCookie(reply, token, config.publicUrl.startsWith('https:'));
    return await reply.redirect('/', 303);
  });
  app.post('/logout', async (_request, reply) => {
    clearCookie(reply);
    return await reply.redirect('/login', 303);
  });
  app.get('/board.css', async (_request, reply) => await show(reply, assets.style));
  app.get('/board.js', async (_request, reply) => await show(reply, assets.script));
  app.get('/favicon.svg', async (_request, reply) => await show(reply, assets.icon));
}
