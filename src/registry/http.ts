import { EnvironmentError } from '../domain/errors';
import { sendStreamed } from './streamed';

/** One registry, reached over HTTP. Every call is bounded in time and turned into one line when it fails. */
export interface Http {
  /** What the lines call it: address without credentials. */
  readonly name: string;
  send(request: Request): Promise<Answer>;
  /** A registry answers with a `Location` that may be relative. */
  resolve(location: string): URL;
}

interface Request {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  url: string | URL;
  /** What is being tried, in words that end the sentence "registry …: could not". */
  what: string;
  headers?: Record<string, string>;
  /** Called for each attempt, since a stream can be sent only once. */
  body?: () => Buffer | AsyncIterable<Buffer>;
  /** Statuses that are an answer; all others become an EnvironmentError. */
  accept: readonly number[];
}

interface Answer {
  status: number;
  headers: Headers;
  /** Chunks of the body; breaking off ends the transfer, and `timeoutMs` without a chunk fails it. */
  chunks(): AsyncGenerator<Buffer>;
  /** The whole body, at most `maxBytes`. */
  bytes(maxBytes: number): Promise<Buffer>;
  /** Must be called when the body is not read, to free the connection. */
  discard(): Promise<void>;
}

interface HttpOptions {
  url: string;
  timeoutMs: number;
  username?: string;
  password?: string;
}

const ERROR_BODY_MAX = 4096;
const TOKEN_BODY_MAX = 1 << 18;

export function createHttp(options: HttpOptions): Http {
  const base = new URL(options.url.endsWith('/') ? options.url : `${options.url}/`);
  const username = options.username ?? decodeURIComponent(base.username);
  const password = options.password ?? decodeURIComponent(base.password);
  base.username = '';
  base.password = '';
  const name = base.href.replace(/\/$/, '');
  const basic = username === '' ? undefined : `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  // Registries with a token service ask by challenge; a token is kept per scope until it is refused.
  const tokens = new Map<string, string>();
  let challenged = false;

  function authorisation(url: URL, scope: string): string | undefined {
    // A registry may send an upload to another host: that one gets no credentials.
    if (url.origin !== base.origin) return undefined;
    const token = tokens.get(scope);
    if (token !== undefined) return `Bearer ${token}`;
    return challenged ? undefined : basic;
  }

  async function fetchToken(challenge: string, what: string): Promise<string | undefined> {
    const parameters = new Map<string, string>();
    for (const match of challenge.matchAll(/(\w+)="([^"]*)"/g)) parameters.set(match[1] ?? '', match[2] ?? '');
    const realm = parameters.get('realm');
    if (!/^bearer /i.test(challenge) || realm === undefined || !URL.canParse(realm)) return undefined;
    const url = new URL(realm);
    // Credentials go only over the same or a better transport than the registry's own.
    if (url.protocol !== 'https:' && url.protocol !== base.protocol) return undefined;
    for (const key of ['service', 'scope']) {
      const value = parameters.get(key);
      if (value !== undefined) url.searchParams.set(key, value);
    }
    const deadline = createDeadline(options.timeoutMs);
    try {
      const response = await fetch(url, { headers: basic === undefined ? {} : { authorization: basic }, signal: deadline.signal });
      const body = await collect(readChunks(response, deadline), TOKEN_BODY_MAX, name, what);
      if (!response.ok) return undefined;
      const parsed: unknown = JSON.parse(body.toString('utf8'));
      if (typeof parsed !== 'object' || parsed === null) return undefined;
      const fields = parsed as Record<string, unknown>;
      const token = fields['token'] ?? fields['access_token'];
      return typeof token === 'string' ? token : undefined;
    } catch (error) {
      throw asEnvironment(error, name, what, options.timeoutMs);
    } finally {
      deadline.end();
    }
  }

  async function attempt(request: Request, url: URL, scope: string): Promise<Answer> {
    const deadline = createDeadline(options.timeoutMs);
    const headers: Record<string, string> = { ...request.headers };
    const authorization = authorisation(url, scope);
    if (authorization !== undefined) headers['authorization'] = authorization;
    try {
      const body = request.body?.();
      const { method } = request;
      const { signal } = deadline;
      const response =
        body === undefined || Buffer.isBuffer(body)
          ? await fetch(url, { method, headers, signal, ...(body === undefined ? {} : { body }) })
          : await sendStreamed(url, { method, headers, signal, body: withProgress(body, deadline) });
      deadline.progress();
      const fail = (error: unknown): EnvironmentError => asEnvironment(error, name, request.what, options.timeoutMs);
      return {
        status: response.status,
        headers: response.headers,
        chunks: async function* () {
          try {
            yield* readChunks(response, deadline);
          } catch (error) {
            throw fail(error);
          } finally {
            deadline.end();
          }
        },
        bytes: async (maxBytes) => {
          try {
            return await collect(readChunks(response, deadline), maxBytes, name, request.what);
          } catch (error) {
            throw fail(error);
          } finally {
            deadline.end();
          }
        },
        discard: async () => {
          deadline.end();
          await response.body?.cancel().catch(() => undefined);
        },
      };
    } catch (error) {
      deadline.end();
      throw asEnvironment(error, name, request.what, options.timeoutMs);
    }
  }

  return {
    name,
    resolve: (location) => new URL(location, base),
    async send(request) {
      const url = new URL(request.url, base);
      const scope = `${/\/v2\/(.+?)\/(?:blobs|manifests|referrers)\//.exec(url.pathname)?.[1] ?? ''} ${request.method === 'GET' || request.method === 'HEAD' ? 'pull' : 'push'}`;
      let answer = await attempt(request, url, scope);
      const challenge = answer.headers.get('www-authenticate');
      if (answer.status === 401 && challenge !== null) {
        const token = await fetchToken(challenge, request.what);
        if (token !== undefined) {
          await answer.discard();
          challenged = true;
          tokens.set(scope, token);
          answer = await attempt(request, url, scope);
        }
      }
      if (request.accept.includes(answer.status)) return answer;
      const said = await answer.bytes(ERROR_BODY_MAX).catch(() => Buffer.alloc(0));
      throw new EnvironmentError(`registry ${name}: could not ${request.what}: ${explain(answer.status, said)}`);
    },
  };
}

/** Time without progress, not time in all: a large blob may take long as long as it moves. */
interface Deadline {
  signal: AbortSignal;
  progress(): void;
  end(): void;
}

class NoProgress extends Error {}

function createDeadline(timeoutMs: number): Deadline {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new NoProgress()), timeoutMs);
  return { signal: controller.signal, progress: () => void timer.refresh(), end: () => clearTimeout(timer) };
}

async function* withProgress(body: AsyncIterable<Buffer>, deadline: Deadline): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    deadline.progress();
    yield chunk;
  }
}

async function* readChunks(response: Response, deadline: Deadline): AsyncGenerator<Buffer> {
  if (response.body === null) return;
  for await (const chunk of response.body) {
    deadline.progress();
    const { buffer, byteOffset, byteLength } = chunk as Uint8Array;
    yield Buffer.from(buffer, byteOffset, byteLength);
  }
}

async function collect(chunks: AsyncIterable<Buffer>, maxBytes: number, name: string, what: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw new EnvironmentError(`registry ${name}: could not ${what}: the answer is larger than ${maxBytes} bytes`);
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}

/** One line for whatever a call or a file under it threw. */
export function asEnvironment(error: unknown, name: string, what: string, timeoutMs: number): EnvironmentError {
  if (error instanceof EnvironmentError) return error;
  // undici wraps the reason, sometimes twice.
  let cause = error;
  for (let depth = 0; depth < 3; depth++) {
    const inner = fieldOf(cause, 'cause');
    if (inner === undefined) break;
    cause = inner;
  }
  return new EnvironmentError(`registry ${name}: could not ${what}: ${reasonOf(cause, timeoutMs)}`, { cause: error });
}

function reasonOf(cause: unknown, timeoutMs: number): string {
  if (cause instanceof NoProgress) return `nothing moved for ${timeoutMs / 1000} s`;
  switch (fieldOf(cause, 'code')) {
    case 'ECONNREFUSED':
      return 'connection refused, is it running?';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'its name does not resolve';
    case 'ENOSPC':
      return 'the disk is full';
    case 'ECONNRESET':
    case 'UND_ERR_SOCKET':
      return 'the connection broke off';
    default:
      return oneLine(String(fieldOf(cause, 'message') ?? cause));
  }
}

// Not by `instanceof Error`: what fetch throws may be of another realm.
function fieldOf(value: unknown, field: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[field] : undefined;
}

function explain(status: number, body: Buffer): string {
  const text = body.toString('utf8');
  let detail = '';
  try {
    const parsed = JSON.parse(text) as { errors?: Array<{ code?: unknown; message?: unknown }> };
    const first = parsed.errors?.[0];
    detail = first === undefined ? '' : `${String(first.message ?? first.code)}`;
  } catch {
    detail = /<html/i.test(text) ? 'a web page, not a registry, answers there' : '';
  }
  if (status === 401 || status === 403) detail = detail === '' ? 'look at the credentials' : `${detail}; look at the credentials`;
  return oneLine(`it answered ${status}${detail === '' ? '' : `, ${detail}`}`);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, 300);
}
