import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { EnvironmentError, UsageError } from '../../src/domain/errors';
import { artifactLayer, createRegistryClient, PROVENANCE_TYPE, pushArtifact } from '../../src/registry';
import { temporaryFolder } from '../support/repositories';
import { registryUrl } from '../support/servers';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const client = createRegistryClient({ url: registryUrl(), timeoutMs: 10_000 });
const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;
const newRepository = (): string => `tally/test-${randomBytes(5).toString('hex')}`;

let unique = 0;
function fileWith(content: Buffer): string {
  unique += 1;
  const file = path.join(folder.dir, `blob${unique}`);
  writeFileSync(file, content);
  return file;
}

describe('blobs', () => {
  test('a file of several megabytes goes and comes back as it was', async () => {
    const repository = newRepository();
    const content = randomBytes(5_000_003);
    const pushed = await client.pushBlobFile(repository, fileWith(content));
    expect(pushed).toEqual({ digest: digestOf(content), size: content.length });
    const target = path.join(folder.dir, 'fetched');
    await client.fetchBlobToFile(repository, pushed.digest, target);
    expect(readFileSync(target).equals(content)).toBe(true);
  });

  test('a large one passes through and is never held in memory', async () => {
    const repository = newRepository();
    const bytes = 256 << 20;
    const file = fileWith(randomBytes(1_000));
    truncateSync(file, bytes);
    const before = process.memoryUsage().rss;
    let peak = before;
    const watching = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 10);
    try {
      const { digest } = await client.pushBlobFile(repository, file);
      const target = path.join(folder.dir, 'large');
      await client.fetchBlobToFile(repository, digest, target);
      expect(statSync(target).size).toBe(bytes);
    } finally {
      clearInterval(watching);
    }
    expect((peak - before) / (1 << 20)).toBeLessThan(128);
  }, 60_000);

  test('an empty file is a blob too', async () => {
    const repository = newRepository();
    const { digest, size } = await client.pushBlobFile(repository, fileWith(Buffer.alloc(0)));
    expect(size).toBe(0);
    expect(await client.getBlob(repository, digest, 10)).toEqual(Buffer.alloc(0));
  });

  test('what the registry has is not sent again', async () => {
    const repository = newRepository();
    const file = fileWith(randomBytes(1_000));
    const first = await client.pushBlobFile(repository, file);
    const sent = jest.spyOn(globalThis, 'fetch');
    try {
      expect(await client.pushBlobFile(repository, file)).toEqual(first);
      expect(sent.mock.calls.map(([, init]) => init?.method)).toEqual(['HEAD']);
    } finally {
      sent.mockRestore();
    }
  });

  test('one that is missing or larger than allowed is environmental, and leaves no file', async () => {
    const repository = newRepository();
    const { digest } = await client.pushBlob(repository, randomBytes(1_000));
    const target = path.join(folder.dir, 'none');
    const missing = digestOf(Buffer.from('never pushed'));
    await expect(client.fetchBlobToFile(repository, missing, target)).rejects.toThrow(/does not hold it/);
    await expect(client.fetchBlobToFile(repository, digest, target, { maxBytes: 999 })).rejects.toThrow(/larger than 999 bytes/);
    await expect(client.getBlob(repository, digest, 999)).rejects.toBeInstanceOf(EnvironmentError);
    expect(readdirSync(folder.dir).filter((name) => name.startsWith('none'))).toEqual([]);
  });

  test('a directory that is not there is environmental, in one line', async () => {
    const repository = newRepository();
    const { digest } = await client.pushBlob(repository, randomBytes(10));
    const failed = client.fetchBlobToFile(repository, digest, path.join(folder.dir, 'no/such/place'));
    await expect(failed).rejects.toBeInstanceOf(EnvironmentError);
    await expect(failed).rejects.toThrow(/^registry http[^\n]*ENOENT[^\n]*$/);
  });
});

describe('manifests', () => {
  test('come back by tag and by digest, and null says that there is none', async () => {
    const repository = newRepository();
    const { digest } = await pushArtifact(client, { repository, kind: 'file', path: fileWith(Buffer.from('one')), tag: 'b1' });
    expect((await client.getManifest(repository, 'b1'))?.digest).toBe(digest);
    expect((await client.getManifest(repository, digest))?.digest).toBe(digest);
    expect(await client.getManifest(repository, 'b2')).toBeNull();
    expect(await client.getManifest(repository, digestOf(Buffer.from('other')))).toBeNull();
  });

  test('the same content is the same artifact, whatever its tag and its repository', async () => {
    const content = randomBytes(100);
    const one = await pushArtifact(client, { repository: newRepository(), kind: 'archive', path: fileWith(content), tag: 'b1' });
    const other = await pushArtifact(client, { repository: newRepository(), kind: 'archive', path: fileWith(content), tag: 'b2' });
    expect(other).toEqual(one);
    expect(one.layer.digest).toBe(digestOf(content));
  });

  test('an artifact leads to its one layer; what is no artifact is said to be none', async () => {
    const repository = newRepository();
    const content = randomBytes(100);
    const { digest } = await pushArtifact(client, { repository, kind: 'archive', path: fileWith(content), tag: 'b1' });
    expect(await artifactLayer(client, repository, digest)).toEqual({ kind: 'archive', digest: digestOf(content), size: 100 });
    await expect(artifactLayer(client, repository, digestOf(Buffer.from('another')))).rejects.toThrow(/does not hold artifact/);
    const { digest: other } = await client.attachReferrer(repository, { digest, size: 1, mediaType: 'x/y' }, PROVENANCE_TYPE, {
      mediaType: 'x/y',
      content,
    });
    await expect(artifactLayer(client, repository, other)).rejects.toThrow(/is not an archive or a file/);
  });
});

describe('referrers', () => {
  const statement = (text: string): { mediaType: string; content: Buffer } => ({
    mediaType: 'application/vnd.dsse.envelope.v1+json',
    content: Buffer.from(text),
  });

  test('an artifact that nobody refers to has none', async () => {
    const repository = newRepository();
    const { digest } = await pushArtifact(client, { repository, kind: 'file', path: fileWith(randomBytes(9)), tag: 'b1' });
    expect(await client.referrers(repository, digest)).toEqual([]);
  });

  test('many attached at once are all found again, each once, with their content', async () => {
    const repository = newRepository();
    const subject = await pushArtifact(client, { repository, kind: 'file', path: fileWith(randomBytes(9)), tag: 'b1' });
    const texts = ['one', 'two', 'three', 'four', 'five', 'one'];
    const attached = await Promise.all(texts.map((text) => client.attachReferrer(repository, subject, PROVENANCE_TYPE, statement(text))));
    const found = await client.referrers(repository, subject.digest);
    expect(new Set(found.map((one) => one.digest))).toEqual(new Set(attached.map((one) => one.digest)));
    expect(found).toHaveLength(5);
    expect(new Set(found.map((one) => one.artifactType))).toEqual(new Set([PROVENANCE_TYPE]));
    const manifest = (await client.getManifest(repository, attached[1]?.digest ?? ''))?.manifest;
    expect(manifest).toMatchObject({ subject: { digest: subject.digest }, layers: [{ digest: digestOf(Buffer.from('two')) }] });
  });
});

test('a name that would change the address is refused before anything is sent', async () => {
  await expect(client.pushBlob('../etc', Buffer.from('x'))).rejects.toThrow(UsageError);
  await expect(client.getManifest('tally/x', '../../blobs')).rejects.toThrow(UsageError);
  await expect(client.getBlob('tally/x', 'sha256:../..', 1)).rejects.toThrow(UsageError);
  await expect(client.referrers('tally/x', 'main')).rejects.toThrow(UsageError);
});

test('a file that shrinks while it is pushed is environmental', async () => {
  const file = fileWith(randomBytes(3_000_000));
  const pushed = client.pushBlobFile(newRepository(), file);
  truncateSync(file, 10);
  await pushed.then(
    // The truncation may come before the first reading: then the short file is what was pushed.
    ({ size }) => expect(size).toBeLessThan(3_000_000),
    (error: unknown) => expect(error).toBeInstanceOf(EnvironmentError),
  );
});
