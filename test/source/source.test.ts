import { chownSync, existsSync, lchownSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { EnvironmentError, UsageError } from '../../src/domain/errors';
import { checkoutCommit, gitHostOf, readRef } from '../../src/source';
import { parseAddress } from '../../src/source/address';
import { eventually } from '../support/eventually';
import { commitAll, git, repository, temporaryFolder } from '../support/repositories';

const folder = temporaryFolder();
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  folder.remove();
});

let unique = 0;
const fresh = (): string => {
  unique += 1;
  return path.join(folder.dir, `r${unique}`);
};
const read = (address: string, ref = 'main'): ReturnType<typeof readRef> => readRef(address, ref, { timeoutMs: 10_000 });

function withFile(name: string | Buffer = 'a.txt', text = 'one'): { dir: string; commit: string } {
  const dir = repository(fresh());
  writeFileSync(typeof name === 'string' ? path.join(dir, name) : Buffer.concat([Buffer.from(`${dir}/`), name]), text);
  return { dir, commit: commitAll(dir, 'first') };
}

async function listening(
  answer: (path: string) => { status: number; type: string; body: string; hang?: boolean },
): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization ?? '');
    const { status, type, body, hang } = answer(request.url ?? '');
    if (hang === true) return;
    response.writeHead(status, { 'content-type': type, ...(status === 401 ? { 'www-authenticate': 'Basic realm="git"' } : {}) });
    response.end(body);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

/** A repository behind plain HTTP, whose address without .git redirects, and which asks for a login. */
async function served(dir: string, login: string): Promise<string> {
  git(dir, ['update-server-info']);
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? '', 'http://localhost');
    const found = /^\/x\.git\/(.*)$/.exec(pathname)?.[1];
    if (found === undefined) return response.writeHead(301, { location: pathname.replace(/^\/x/, '/x.git') + search }).end();
    if (request.headers.authorization !== `Basic ${Buffer.from(login).toString('base64')}`) {
      return response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
    }
    const file = path.join(dir, '.git', found);
    if (!existsSync(file)) return response.writeHead(404).end();
    return response.writeHead(200, { 'content-type': 'text/plain' }).end(readFileSync(file));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://${login}@127.0.0.1:${(server.address() as AddressInfo).port}/x`;
}

/** As another user's, where we may: a user who is not root has nobody to give it to. */
function givenAway(dir: string): string {
  if (process.getuid?.() !== 0) return dir;
  chownSync(dir, 65_534, 65_534);
  for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) lchownSync(path.join(dir, name), 65_534, 65_534);
  return dir;
}

describe('reading a ref', () => {
  test('the head of a branch is what git says it is', async () => {
    const { dir, commit } = withFile();
    expect(await read(dir)).toEqual({ kind: 'head', commit });
    expect(await read(`file://${dir}`, 'refs/heads/main')).toEqual({ kind: 'head', commit });
  });

  test('an annotated tag is peeled to its commit', async () => {
    const { dir, commit } = withFile();
    git(dir, ['tag', '--annotate', 'v1', '--message', 'one']);
    expect(await read(dir, 'v1')).toEqual({ kind: 'head', commit });
  });

  test('a branch whose name only ends like the ref is another branch', async () => {
    const { dir } = withFile();
    git(dir, ['branch', 'feature/trunk']);
    expect(await read(dir, 'trunk')).toEqual({ kind: 'absent', reason: 'there is no trunk in the repository' });
  });

  test('a deleted branch and an empty repository are absent, each in its words', async () => {
    const { dir } = withFile();
    git(dir, ['checkout', '--quiet', '-b', 'other']);
    git(dir, ['branch', '--quiet', '-D', 'main']);
    expect(await read(dir)).toEqual({ kind: 'absent', reason: 'there is no main in the repository' });
    expect(await read(repository(fresh()))).toEqual({ kind: 'absent', reason: 'the repository is empty' });
  });

  test('after a force-push, to an amended root as well, the ref wins', async () => {
    const { dir, commit } = withFile();
    git(dir, ['commit', '--quiet', '--amend', '--message', 'amended root', '--date=2001-01-01T00:00:00']);
    const amended = git(dir, ['rev-parse', 'HEAD']);
    expect(amended).not.toBe(commit);
    expect(await read(dir)).toEqual({ kind: 'head', commit: amended });
    git(dir, ['reset', '--quiet', '--hard', commit]);
    expect(await read(dir)).toEqual({ kind: 'head', commit });
  });

  test('five pushes in a second with backdated commits end at the last one pushed', async () => {
    const { dir } = withFile();
    let last = '';
    for (let n = 5; n >= 1; n -= 1)
      last = commitAll(dir, `push ${n}`, { GIT_AUTHOR_DATE: `200${n}-01-01T00:00:00`, GIT_COMMITTER_DATE: `200${n}-01-01T00:00:00` });
    expect(await read(dir)).toEqual({ kind: 'head', commit: last });
  });

  test('a repository that is not there is unreadable, never absent', async () => {
    expect(await read(path.join(folder.dir, 'nowhere'))).toMatchObject({
      kind: 'unreadable',
      reason: expect.stringContaining('does not appear to be a git repository'),
    });
    expect(await read('http://127.0.0.1:1/x.git')).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining('onnect') });
  });

  test('a page of HTML where git should answer is said to be none', async () => {
    const { url } = await listening(() => ({ status: 200, type: 'text/html', body: '<html>Welcome</html>' }));
    expect(await read(`${url}/x.git`)).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining('is not git') });
  });

  test('one that hangs is given up within its time', async () => {
    const { url } = await listening(() => ({ status: 200, type: '', body: '', hang: true }));
    expect(await readRef(`${url}/x.git`, 'main', { timeoutMs: 300 })).toEqual({ kind: 'unreadable', reason: 'no answer within 0.3 s' });
  });

  test('credentials reach the server and neither an argument nor a reason', async () => {
    const { url, seen } = await listening(() => ({ status: 401, type: 'text/plain', body: 'no' }));
    const address = `${url.replace('http://', 'http://ada:s3cret@')}/x.git`;
    const said = await read(address);
    expect(said.kind).toBe('unreadable');
    expect(JSON.stringify(said)).not.toContain('s3cret');
    expect(seen).toContain(`Basic ${Buffer.from('ada:s3cret').toString('base64')}`);
    expect(parseAddress(address).url).not.toContain('s3cret');
  });

  test('no process shows a password while git runs', async () => {
    const { url, seen } = await listening(() => ({ status: 200, type: '', body: '', hang: true }));
    const reading = readRef(`${url.replace('http://', 'http://ada:s3cret@')}/x.git`, 'main', { timeoutMs: 3_000 });
    await eventually(async () => seen.length > 0, { timeoutMs: 3_000 });
    const commands = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/cmdline`))
      .map((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        } catch {
          return '';
        }
      });
    expect(commands.some((line) => line.includes('ls-remote') && line.includes(url))).toBe(true);
    expect(commands.filter((line) => line.includes('s3cret'))).toEqual([]);
    await reading;
  });

  test('a login and a redirect on the same host lead to the ref', async () => {
    const { dir, commit } = withFile();
    expect(await read(await served(dir, 'ada:s3cret'))).toEqual({ kind: 'head', commit });
  });

  test('the repository of another user of this machine is read', async () => {
    const { dir, commit } = withFile();
    expect(await read(givenAway(dir))).toEqual({ kind: 'head', commit });
  });

  test.each(['--upload-pack=touch /tmp/owned', '', 'a b', 'a..b', 'x\0y'])('%j is refused as a ref', async (ref) => {
    const { dir } = withFile();
    expect(await read(dir, ref)).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining('no name of a ref') });
  });

  test.each(['--upload-pack=touch /tmp/owned', '-x', 'ext::sh -c id', 'fd::7', 'ftp://host/x', '', 'a\nb', 'ssh://-oProxyCommand=id/x', 'nonsense'])(
    '%j is refused as an address',
    async (address) => {
      expect(() => parseAddress(address)).toThrow(UsageError);
      expect((await read(address)).kind).toBe('unreadable');
    },
  );

  test('the host decides who waits for whom', () => {
    expect(gitHostOf('https://ada:x@git.example:8443/a.git')).toBe('git.example:8443');
    expect(gitHostOf('git@git.example:a.git')).toBe('git.example');
    expect(gitHostOf('/srv/a.git')).toBe('local');
  });
});

describe('checking a commit out', () => {
  const checkout = (
    repositoryAddress: string,
    commit: string,
    more: { ref?: string; timeoutMs?: number; dir?: string } = {},
  ): { dir: string; done: Promise<void> } => {
    const dir = more.dir ?? fresh();
    return {
      dir,
      done: checkoutCommit({ repository: repositoryAddress, ref: more.ref ?? 'refs/heads/main', commit, dir, timeoutMs: more.timeoutMs ?? 20_000 }),
    };
  };

  test('gives exactly that commit, though the branch has moved on', async () => {
    const { dir, commit } = withFile();
    writeFileSync(path.join(dir, 'a.txt'), 'two');
    commitAll(dir, 'second');
    const out = checkout(dir, commit);
    await out.done;
    expect(readFileSync(path.join(out.dir, 'a.txt'), 'utf8')).toBe('one');
  });

  test('a commit that a force-push has taken away is environmental, and leaves nothing', async () => {
    const { dir } = withFile();
    const out = checkout(dir, 'd'.repeat(40));
    await expect(out.done).rejects.toThrow(EnvironmentError);
    expect(existsSync(out.dir)).toBe(false);
  });

  test('a server that gives no single commits is asked for the ref; login and redirect hold there too', async () => {
    const { dir, commit } = withFile();
    writeFileSync(path.join(dir, 'a.txt'), 'two');
    commitAll(dir, 'second');
    const out = checkout(await served(dir, 'ada:s3cret'), commit);
    await out.done;
    expect(readFileSync(path.join(out.dir, 'a.txt'), 'utf8')).toBe('one');
    expect(readFileSync(path.join(out.dir, '.git/config'), 'utf8')).not.toContain('s3cret');
  });

  test('a commit that was amended away and collected is environmental, and says so', async () => {
    const { dir, commit } = withFile();
    git(dir, ['commit', '--quiet', '--amend', '--message', 'amended root']);
    git(dir, ['reflog', 'expire', '--expire=now', '--all']);
    git(dir, ['gc', '--quiet', '--prune=now']);
    const out = checkout(dir, commit);
    await expect(out.done).rejects.toThrow('no longer reachable from refs/heads/main: the ref was rewritten');
    expect(existsSync(out.dir)).toBe(false);
  });

  test('another user of this machine has it, submodules too', async () => {
    const inner = withFile('inner.txt', 'inner');
    const outer = withFile();
    git(outer.dir, ['submodule', '--quiet', 'add', inner.dir, 'inner']);
    const commit = commitAll(outer.dir, 'with a submodule');
    givenAway(inner.dir);
    const out = checkout(givenAway(outer.dir), commit);
    await out.done;
    expect(readFileSync(path.join(out.dir, 'inner/inner.txt'), 'utf8')).toBe('inner');
  });

  test('a ref or a commit that git would take for an option is refused before anything is made', async () => {
    const { dir, commit } = withFile();
    for (const out of [checkout(dir, commit, { ref: '--upload-pack=id' }), checkout(dir, '--upload-pack=id')]) {
      await expect(out.done).rejects.toThrow(UsageError);
      expect(existsSync(out.dir)).toBe(false);
    }
  });

  test('a submodule on this machine is not reached from a repository elsewhere', async () => {
    const inner = withFile('inner.txt', 'inner');
    const outer = withFile();
    git(outer.dir, ['submodule', '--quiet', 'add', inner.dir, 'inner']);
    const commit = commitAll(outer.dir, 'with a submodule');
    const out = checkout(await served(outer.dir, 'ada:s3cret'), commit);
    await expect(out.done).rejects.toThrow(/transport 'file' not allowed/);
    expect(existsSync(out.dir)).toBe(false);
  });

  test('a submodule comes along', async () => {
    const inner = withFile('inner.txt', 'inner');
    const outer = withFile();
    git(outer.dir, ['submodule', '--quiet', 'add', inner.dir, 'inner']);
    const out = checkout(outer.dir, commitAll(outer.dir, 'with a submodule'));
    await out.done;
    expect(readFileSync(path.join(out.dir, 'inner/inner.txt'), 'utf8')).toBe('inner');
  });

  test('a submodule that cannot be had is environmental, with its reason, and leaves nothing', async () => {
    const inner = withFile('inner.txt', 'inner');
    const outer = withFile();
    git(outer.dir, ['submodule', '--quiet', 'add', inner.dir, 'inner']);
    git(outer.dir, ['config', '--file', '.gitmodules', 'submodule.inner.url', 'http://127.0.0.1:1/inner.git']);
    const out = checkout(outer.dir, commitAll(outer.dir, 'a submodule from nowhere'));
    await expect(out.done).rejects.toThrow(/fetch of a submodule/);
    expect(existsSync(out.dir)).toBe(false);
  });

  test('a loop of symlinks is checked out as it is', async () => {
    const { dir } = withFile();
    await symlink('b', path.join(dir, 'c'));
    await symlink('c', path.join(dir, 'b'));
    const out = checkout(dir, commitAll(dir, 'a loop'));
    await out.done;
    expect(readdirSync(out.dir)).toEqual(expect.arrayContaining(['a.txt', 'b', 'c']));
  });

  test('a file name that is no UTF-8 is checked out byte for byte', async () => {
    const name = Buffer.from([0x66, 0xff, 0xfe, 0x2e, 0x74]);
    const { dir, commit } = withFile(name);
    const out = checkout(dir, commit);
    await out.done;
    expect(readdirSync(Buffer.from(out.dir), { encoding: 'buffer' }).some((found) => found.equals(name))).toBe(true);
  });

  test('hooks and filters of the repository are not run', async () => {
    const { dir } = withFile('.gitattributes', '* filter=lfs\n');
    const out = checkout(dir, git(dir, ['rev-parse', 'HEAD']));
    await out.done;
    expect(existsSync(path.join(out.dir, '.gitattributes'))).toBe(true);
  });

  test('a repository of 300 MB with too little time is environmental and leaves nothing on the disk', async () => {
    const dir = repository(fresh());
    await mkdir(path.join(dir, 'big'));
    const { randomBytes } = await import('node:crypto');
    for (let n = 0; n < 30; n += 1) await writeFile(path.join(dir, 'big', `${n}`), randomBytes(10 * 1024 * 1024));
    git(dir, ['config', 'core.compression', '0']);
    const commit = commitAll(dir, 'three hundred megabytes');
    const parent = fresh();
    await mkdir(parent);
    const out = checkout(`file://${dir}`, commit, { timeoutMs: 250, dir: path.join(parent, 'tree') });
    await expect(out.done).rejects.toThrow(/no answer within/);
    expect(readdirSync(parent)).toEqual([]);
  }, 120_000);
});
