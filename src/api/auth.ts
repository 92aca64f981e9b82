/**
 * Who asks. A token comes as a bearer, or in the board's cookie; the cookie opens readings only, so that no other page can
 * make a browser change anything. Tokens are compared by their hash in the store.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Db, whoIs } from '../inventory';
import { Problem } from './problems';

const COOKIE = 'tally_token';
const COOKIE_AGE_S = 30 * 24 * 3_600;
const TOKEN_MAX = 200;

declare module 'fastify' {
  interface FastifyRequest {
    /** The name of the token that asks; empty where none is needed. */
    who: string;
  }
}

/** A hook for all routes behind a token. */
export function requireToken(db: Db): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    const token = tokenOf(request);
    if (token === null) throw new Problem(401, 'a token is needed: TALLY_TOKEN, or the client.json that tally up leaves in .tally/home');
    const who = await whoIs(db, token);
    if (who === null) throw new Problem(401, 'this token is nobody’s here: tally up leaves a new one in .tally/home/client.json');
    request.who = who;
  };
}

function tokenOf(request: FastifyRequest): string | null {
  const { authorization } = request.headers;
  if (authorization !== undefined) {
    const [, token] = /^Bearer ([!-~]+)$/i.exec(authorization) ?? [];
    return token !== undefined && token.length <= TOKEN_MAX ? token : null;
  }
  return request.method === 'GET' ? cookieToken(request) : null;
}

export function cookieToken(request: FastifyRequest): string | null {
  for (const part of (request.headers.cookie ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2);
    if (name === COOKIE && value !== undefined && value !== '' && value.length <= TOKEN_MAX) return value;
  }
  return null;
}

export function setCookie(reply: FastifyReply, token: string, isSecure: boolean): void {
  reply.header('set-cookie', `${COOKIE}=${token}; Path=/; Max-Age=${COOKIE_AGE_S}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`);
}

export function clearCookie(reply: FastifyReply): void {
  reply.header('set-cookie', `${COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`);
}
