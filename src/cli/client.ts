/** One call of the API over node:http, which starts faster than fetch does. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { EnvironmentError, UsageError } from '../domain/errors';
import type { Place } from './place';

/** A little more than the server gives itself. */
const TIMEOUT_MS = 35_000;
const ANSWER_MAX_BYTES = 64 << 20;
/** Must be API_VERSION of the schema, which is not loaded here since it would take longer than the whole call. */
const API_VERSION = '1';

export interface Api {
  readonly place: Place;
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body?: object): Promise<T>;
  delete<T>(path: string, body: object): Promise<T>;
}

/** What the server refuses is a UsageError; that it does not answer, or is in trouble, an EnvironmentError. */
export function connectApi(place: Place): Api {
  return {
    place,
    get: async <T>(path: string) => await call<T>(place, 'GET', path),
    post: async <T>(path: string, body: object = {}) => await call<T>(place, 'POST', path, body),
    delete: async <T>(path: string, body: object) => await call<T>(place, 'DELETE', path, body),
  };
}

async function call<T>(place: Place, method: string, path: string, body?: object): Promise<T> {
  const url = new URL(`${place.url}/api/v1/${path}`);
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    accept: 'application/json',
    ...(place.token === null ? {} : { authorization: `Bearer ${place.token}` }),
    ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }),
  };
  const { response, content } = await exchange(url, { method, headers }, text, place);
  const status = response.statusCode ?? 0;
  const answer = jsonOf(content);
  if (status >= 400) {
    const said =
      typeof answer === 'object' && answer !== null && 'error' in answer
        ? String(answer.error)
        : `${place.url} answered ${method} ${url.pathname} with ${status}`;
    throw status >= 500 ? new EnvironmentError(said) : new UsageError(said);
  }
  if (response.headers['tally-api'] !== API_VERSION || answer === undefined) {
    throw new EnvironmentError(`what answers at ${place.url} is no control plane that this tally can read: bring both to the same version`);
  }
  return answer as T;
}

async function exchange(
  url: URL,
  options: { method: string; headers: Record<string, string> },
  body: string | undefined,
  place: Place,
): Promise<{ response: IncomingMessage; content: string }> {
  const request = url.protocol === 'https:' ? (require('node:https') as typeof import('node:https')).request : httpRequest;
  return await new Promise((resolve, reject) => {
    let sent: ClientRequest | null = null;
    const fail = (reason: string): void => {
      clearTimeout(timer);
      sent?.destroy();
      reject(
        new EnvironmentError(
          `the control plane at ${place.url} does not answer (${reason}): start it with "tally up", or say where it is with TALLY_URL`,
        ),
      );
    };
    const timer = setTimeout(() => fail(`nothing within ${TIMEOUT_MS / 1_000} s`), TIMEOUT_MS);
    sent = request(url, options, (response) => {
      const parts: Buffer[] = [];
      let size = 0;
      response.on('data', (part: Buffer) => {
        size += part.length;
        if (size > ANSWER_MAX_BYTES) fail('its answer is too large');
        else parts.push(part);
      });
      response.on('error', (error) => fail(reasonOf(error)));
      response.on('end', () => {
        clearTimeout(timer);
        resolve({ response, content: Buffer.concat(parts).toString('utf8') });
      });
    });
    sent.on('error', (error) => fail(reasonOf(error)));
    sent.end(body);
  });
}

function reasonOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
