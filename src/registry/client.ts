import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { EnvironmentError } from '../domain/errors';
import { checkDigest, checkReference, checkRepository, describeFile, isDigest, sha256 } from './digest';
import type { Http } from './http';
import { asEnvironment, createHttp } from './http';
import { createReferrers } from './referrers';
import type { Pushed, RegistryClient, RegistryOptions } from './types';
import { INDEX_TYPE, MANIFEST_TYPE } from './types';

const MANIFEST_MAX = 4 << 20;
const DEFAULT_TIMEOUT_MS = 30_000;

export function createRegistryClient(options: RegistryOptions): RegistryClient {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const http = createHttp({ ...options, timeoutMs });

  async function hasBlob(repository: string, digest: string, what: string): Promise<boolean> {
    const answer = await http.send({ method: 'HEAD', url: `v2/${repository}/blobs/${digest}`, what, accept: [200, 404] });
    await answer.discard();
    return answer.status === 200;
  }

  async function upload(repository: string, pushed: Pushed, body: () => Buffer | AsyncIterable<Buffer>): Promise<Pushed> {
    const what = `push blob ${pushed.digest} of ${repository}`;
    if (await hasBlob(repository, pushed.digest, what)) return pushed;
    const begun = await http.send({
      method: 'POST',
      url: `v2/${repository}/blobs/uploads/`,
      what,
      headers: { 'content-length': '0' },
      accept: [202],
    });
    await begun.discard();
    const location = begun.headers.get('location');
    if (location === null) throw new EnvironmentError(`registry ${http.name}: could not ${what}: it gave no place to upload to`);
    const url = http.resolve(location);
    url.searchParams.set('digest', pushed.digest);
    const headers = { 'content-type': 'application/octet-stream', 'content-length': String(pushed.size) };
    const done = await http.send({ method: 'PUT', url, what, headers, body, accept: [201] });
    await done.discard();
    return pushed;
  }

  async function getManifest(repository: string, reference: string): Promise<{ digest: string; manifest: unknown } | null> {
    checkRepository(repository);
    checkReference(reference);
    const what = `read manifest ${reference} of ${repository}`;
    const headers = { accept: `${MANIFEST_TYPE}, ${INDEX_TYPE}` };
    const answer = await http.send({ method: 'GET', url: `v2/${repository}/manifests/${reference}`, what, headers, accept: [200, 404] });
    if (answer.status === 404) {
      await answer.discard();
      return null;
    }
    const content = await answer.bytes(MANIFEST_MAX);
    const digest = sha256(content);
    const expected = isDigest(reference) ? reference : (answer.headers.get('docker-content-digest') ?? digest);
    if (digest !== expected)
      throw new EnvironmentError(`registry ${http.name}: could not ${what}: what came has the digest ${digest}, not ${expected}`);
    return { digest, manifest: parseJson(content, http, what) };
  }

  async function pushManifest(
    repository: string,
    manifest: object,
    how: { tag?: string; mediaType?: string } = {},
  ): Promise<Pushed & { headers: Headers }> {
    checkRepository(repository);
    if (how.tag !== undefined) checkReference(how.tag);
    const content = Buffer.from(JSON.stringify(manifest));
    const digest = sha256(content);
    const answer = await http.send({
      method: 'PUT',
      url: `v2/${repository}/manifests/${how.tag ?? digest}`,
      what: `push manifest ${how.tag ?? digest} of ${repository}`,
      headers: { 'content-type': how.mediaType ?? MANIFEST_TYPE },
      body: () => content,
      accept: [201],
    });
    await answer.discard();
    return { digest, size: content.length, headers: answer.headers };
  }

  async function pushBlob(repository: string, content: Buffer): Promise<Pushed> {
    checkRepository(repository);
    return upload(repository, { digest: sha256(content), size: content.length }, () => content);
  }

  async function openBlob(repository: string, digest: string, maxBytes: number, what: string): Promise<AsyncGenerator<Buffer>> {
    const answer = await http.send({ method: 'GET', url: `v2/${repository}/blobs/${digest}`, what, accept: [200, 404] });
    const length = Number(answer.headers.get('content-length') ?? 0);
    if (answer.status === 404 || length > maxBytes) await answer.discard();
    if (answer.status === 404) throw new EnvironmentError(`registry ${http.name}: could not ${what}: it does not hold it`);
    if (length > maxBytes) throw tooLarge(http, what, maxBytes);
    return verified(answer.chunks(), { digest, maxBytes, http, what });
  }

  return {
    async pushBlobFile(repository, path) {
      checkRepository(repository);
      const pushed = await describeFile(path).catch((error: unknown) => {
        throw asEnvironment(error, http.name, `push ${path} to ${repository}`, timeoutMs);
      });
      return upload(repository, pushed, () => exactly(createReadStream(path), pushed.size));
    },
    pushBlob,
    async pushManifest(repository, manifest, how) {
      const { digest, size } = await pushManifest(repository, manifest, how);
      return { digest, size };
    },
    getManifest,
    async fetchBlobToFile(repository, digest, path, { maxBytes = Number.POSITIVE_INFINITY } = {}) {
      checkRepository(repository);
      checkDigest(digest);
      const what = `fetch blob ${digest} of ${repository}`;
      const temporary = `${path}.${randomBytes(6).toString('hex')}.part`;
      try {
        // Before the transfer is begun: one that nobody reads would hold its connection.
        const file = await open(temporary, 'wx', 0o644);
        try {
          for await (const chunk of await openBlob(repository, digest, maxBytes, what)) await file.writeFile(chunk);
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw asEnvironment(error, http.name, what, timeoutMs);
      }
    },
    async getBlob(repository, digest, maxBytes) {
      checkRepository(repository);
      checkDigest(digest);
      const parts: Buffer[] = [];
      for await (const chunk of await openBlob(repository, digest, maxBytes, `read blob ${digest} of ${repository}`)) parts.push(chunk);
      return Buffer.concat(parts);
    },
    ...createReferrers(http, { pushBlob, pushManifest, getManifest }),
  };
}

/** A file that changes while it is sent would leave the registry waiting for the rest. */
async function* exactly(chunks: AsyncIterable<Buffer>, size: number): AsyncGenerator<Buffer> {
  let sent = 0;
  for await (const chunk of chunks) {
    sent += chunk.length;
    if (sent > size) break;
    yield chunk;
  }
  if (sent !== size) throw new Error('the file changed while it was sent');
}

/** Passes chunks on; ends with an error unless they were at most `maxBytes` and had the digest. */
async function* verified(
  chunks: AsyncGenerator<Buffer>,
  { digest, maxBytes, http, what }: { digest: string; maxBytes: number; http: Http; what: string },
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(http, what, maxBytes);
    hash.update(chunk);
    yield chunk;
  }
  const actual = `sha256:${hash.digest('hex')}`;
  if (actual !== digest) throw new EnvironmentError(`registry ${http.name}: could not ${what}: what came has the digest ${actual}`);
}

function tooLarge(http: Http, what: string, maxBytes: number): EnvironmentError {
  return new EnvironmentError(`registry ${http.name}: could not ${what}: it is larger than ${maxBytes} bytes`);
}

function parseJson(content: Buffer, http: Http, what: string): unknown {
  try {
    return JSON.parse(content.toString('utf8'));
  } catch {
    throw new EnvironmentError(`registry ${http.name}: could not ${what}: what came is not JSON`);
  }
}
