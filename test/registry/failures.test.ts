import { createHash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { EnvironmentError } from '../../src/domain/errors';
import { createRegistryClient } from '../../src/registry';
import { temporaryFolder } from '../support/repositories';

/** A registry that behaves as a good one never does. */
const folder = temporaryFolder();
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  folder.remove();
});

async function answering(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const digestOf = (content: string): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;
const oneLine = /^registry http:\/\/[^\n]+: could not [^\n]+: [^\n]+$/;

async function failure(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(EnvironmentError);
  expect(String((error as Error).message)).toMatch(oneLine);
  return (error as Error).message;
}

test('one that is not there is said to refuse the connection', async () => {
  const url = await answering(() => undefined);
  const server = servers.pop();
  await new Promise((resolve) => server?.close(resolve));
  expect(await failure(createRegistryClient({ url }).getManifest('tally/a', 'b1'))).toContain('connection refused, is it running?');
});

test('one that never answers is given up within its time', async () => {
  const client = createRegistryClient({ url: await answering(() => undefined), timeoutMs: 200 });
  expect(await failure(client.pushBlob('tally/a', Buffer.from('x')))).toContain('nothing moved for 0.2 s');
});

test('one that stops in the middle of a blob is given up, and the half is removed', async () => {
  const url = await answering((_request, response) => {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('half');
  });
  const target = path.join(folder.dir, 'half');
  const client = createRegistryClient({ url, timeoutMs: 200 });
  expect(await failure(client.fetchBlobToFile('tally/a', digestOf('x'), target))).toContain('nothing moved for 0.2 s');
  expect(readdirSync(folder.dir)).toEqual([]);
});

test('time without progress counts, not time in all', async () => {
  const parts = Array.from({ length: 6 }, (_, n) => `part ${n}`);
  const url = await answering((_request, response) => {
    response.writeHead(200);
    const left = [...parts];
    const timer = setInterval(() => {
      const next = left.shift();
      if (next !== undefined) response.write(next);
      else {
        clearInterval(timer);
        response.end();
      }
    }, 100);
  });
  const client = createRegistryClient({ url, timeoutMs: 400 });
  expect((await client.getBlob('tally/a', digestOf(parts.join('')), 1_000)).toString()).toBe(parts.join(''));
});

test('content with another digest is never handed on', async () => {
  const client = createRegistryClient({ url: await answering((_request, response) => response.end('{"other":1}')) });
  const target = path.join(folder.dir, 'other');
  expect(await failure(client.fetchBlobToFile('tally/a', digestOf('x'), target))).toContain(`has the digest ${digestOf('{"other":1}')}`);
  expect(await failure(client.getBlob('tally/a', digestOf('x'), 100))).toContain('has the digest');
  expect(await failure(client.getManifest('tally/a', digestOf('x')))).toContain('has the digest');
  expect(readdirSync(folder.dir)).toEqual([]);
});

test('a body without end stops at its limit', async () => {
  const url = await answering((_request, response) => {
    const more = (): void => {
      while (response.write(Buffer.alloc(1 << 16)));
    };
    response.on('drain', more);
    more();
  });
  const client = createRegistryClient({ url });
  expect(await failure(client.getBlob('tally/a', digestOf('x'), 1_000_000))).toContain('larger than 1000000 bytes');
  expect(await failure(client.getManifest('tally/a', 'b1'))).toContain('larger than');
});

test('a web page, an error of its own and a refusal of access each have their words', async () => {
  const page = await answering((_request, response) => response.writeHead(500).end('<html>oops</html>'));
  expect(await failure(createRegistryClient({ url: page }).getManifest('tally/a', 'b1'))).toContain('it answered 500, a web page');
  const said = await answering((_request, response) => response.writeHead(507).end('{"errors":[{"message":"no space\\nleft"}]}'));
  expect(await failure(createRegistryClient({ url: said }).getManifest('tally/a', 'b1'))).toContain('it answered 507, no space left');
  const closed = await answering((_request, response) => response.writeHead(403).end());
  const message = await failure(createRegistryClient({ url: closed, username: 'ada', password: 's3cret' }).getManifest('tally/a', 'b1'));
  expect(message).toContain('look at the credentials');
  expect(message).not.toContain('s3cret');
});

test('credentials in the address are sent and never said', async () => {
  const seen: Array<string | undefined> = [];
  const url = await answering((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(401).end();
  });
  const client = createRegistryClient({ url: url.replace('http://', 'http://ada:s3cret@') });
  expect(await failure(client.getManifest('tally/a', 'b1'))).not.toContain('s3cret');
  expect(seen).toEqual([`Basic ${Buffer.from('ada:s3cret').toString('base64')}`]);
});

test('a registry with a token service is asked again with its token', async () => {
  const asked: string[] = [];
  const url = await answering((request, response) => {
    const where = new URL(request.url ?? '', url);
    asked.push(`${where.pathname} ${request.headers.authorization?.split(' ')[0] ?? ''}`);
    if (where.pathname === '/token') {
      expect(where.searchParams.get('scope')).toBe('repository:tally/a:pull');
      response.end('{"token":"t0ken"}');
    } else if (request.headers.authorization === 'Bearer t0ken') response.writeHead(404).end();
    else {
      const challenge = `Bearer realm="${url}/token",service="r",scope="repository:tally/a:pull"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
    }
  });
  const client = createRegistryClient({ url, username: 'ada', password: 's3cret' });
  expect(await client.getManifest('tally/a', 'b1')).toBeNull();
  expect(await client.getManifest('tally/a', 'b2')).toBeNull();
  const manifest = (tag: string): string => `/v2/tally/a/manifests/${tag} `;
  expect(asked).toEqual([`${manifest('b1')}Basic`, '/token Basic', `${manifest('b1')}Bearer`, `${manifest('b2')}Bearer`]);
});

test('an upload that goes to another host takes the content there and the credentials not', async () => {
  const elsewhere: string[] = [];
  const other = await answering((request, response) => {
    elsewhere.push(`${request.method} ${request.url} ${request.headers.authorization ?? 'nobody'} ${request.headers['content-length']}`);
    request.resume().on('end', () => response.writeHead(201).end());
  });
  const url = await answering((request, response) => {
    if (request.method === 'HEAD') response.writeHead(404).end();
    else response.writeHead(202, { location: `${other}/upload?state=1` }).end();
  });
  const file = path.join(folder.dir, 'sent');
  writeFileSync(file, 'content');
  await createRegistryClient({ url, username: 'ada', password: 's3cret' }).pushBlobFile('tally/a', file);
  expect(elsewhere).toEqual([`PUT /upload?state=1&digest=${encodeURIComponent(digestOf('content'))} nobody 7`]);
});

test('a registry that keeps the list of referrers itself is left to it, page by page', async () => {
  const subject = { digest: digestOf('subject'), size: 7, mediaType: 'x/y' };
  const entry = (n: number): object => ({ mediaType: 'x/y', digest: digestOf(`${n}`), size: 1, artifactType: `t/${n}` });
  const written: string[] = [];
  const url = await answering((request, response) => {
    const where = new URL(request.url ?? '', url);
    if (where.pathname.includes('/referrers/')) {
      const isSecond = where.searchParams.get('page') === '2';
      if (!isSecond) response.setHeader('link', `<${where.pathname}?page=2>; rel="next"`);
      response.end(JSON.stringify({ schemaVersion: 2, manifests: [entry(isSecond ? 2 : 1)] }));
    } else if (request.method === 'HEAD') response.end();
    else {
      written.push(`${request.method} ${where.pathname}`);
      response.setHeader('oci-subject', subject.digest);
      request.resume().on('end', () => response.writeHead(201).end());
    }
  });
  const client = createRegistryClient({ url });
  const { digest } = await client.attachReferrer('tally/a', subject, 't/1', { mediaType: 'x/y', content: Buffer.from('s') });
  expect(written).toEqual([`PUT /v2/tally/a/manifests/${digest}`]);
  expect(await client.referrers('tally/a', subject.digest)).toEqual([
    { digest: digestOf('1'), artifactType: 't/1' },
    { digest: digestOf('2'), artifactType: 't/2' },
  ]);
});
