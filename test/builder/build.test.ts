import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { STATEMENT_TYPE } from '../../src/builder';
import { verify } from '../../src/link';
import { createRegistryClient, PROVENANCE_TYPE } from '../../src/registry';
import type { BuildAnswer } from '../../src/schema/messages';
import { envelope } from '../../src/schema/messages';
import { eventually } from '../support/eventually';
import { registryUrl } from '../support/servers';
import { scratch } from './scratch';
import { answerOf, builderOfFile, fitOf, manifestOf, newRepository, startControl, startTestBuilder, there } from './world';

const mesh = builderOfFile();

/** Builds one commit whose module.yaml has these commands, and gives the answer. */
async function buildOf(
  build: Record<string, unknown>,
  artifacts: Record<string, unknown> = {},
  files: Record<string, string> = {},
): Promise<BuildAnswer & { lines: string[] }> {
  const repository = newRepository();
  const commit = repository.commit({ ...manifestOf(repository, build, artifacts), ...files });
  const answered = await answerOf(mesh.control, repository, commit);
  return { ...answered, lines: mesh.control.linesOf(answered.request) };
}

function leftIn(home: string): string[] {
  return readdirSync(join(home, 'work'));
}

describe('a build', () => {
  test('that is fit gives artifacts by digest, a kept log and a signed provenance, and leaves no work directory', async () => {
    const repository = newRepository();
    const commit = repository.commit({
      'module.yaml': [
        `module: ${repository.module}`,
        'artifacts:',
        '  site: { archive: out/ }',
        '  tool: { file: dist/tool.sh }',
        'build:',
        '  fetch: echo fetched > $HOME/fetched',
        '  run: |',
        '    mkdir -p out dist',
        '    cat $HOME/fetched page.html > out/index.html',
        '    printf "#!/bin/sh\\necho tool\\n" > dist/tool.sh',
        '  test: test -s out/index.html && echo tested',
      ].join('\n'),
      'page.html': '<h1>hello</h1>\n',
    });
    const request = `request-${repository.module}`;
    const answered = fitOf(await answerOf(mesh.control, repository, commit, { request }));
    expect(answered).toMatchObject({ v: 1, kind: 'build', request, attempt: 1, builder: 'builder-1', outcome: 'fit', inputs: [] });
    expect(Object.keys(answered.steps)).toEqual(expect.arrayContaining(['checkout', 'fetch', 'run', 'test', 'pack', 'push']));
    expect(answered.artifacts.map(({ name, kind, repository: place }) => [name, kind, place])).toEqual([
      ['site', 'archive', `tally/${repository.module}`],
      ['tool', 'file', `tally/${repository.module}`],
    ]);

    const registry = createRegistryClient({ url: registryUrl() });
    const [site, tool] = answered.artifacts;
    if (site === undefined || tool === undefined) throw new Error('two artifacts');
    expect((await registry.getBlob(tool.repository, tool.blob, 1_000)).toString()).toBe('#!/bin/sh\necho tool\n');
    expect((await registry.getManifest(site.repository, `${request}-site`))?.digest).toBe(site.digest);

    // Provenance: found from the artifact, signed by the key that the beats show, about this commit.
    const referrers = (await registry.referrers(site.repository, site.digest)).filter((one) => one.artifactType === PROVENANCE_TYPE);
    expect(referrers).toHaveLength(1);
    const referrer = (await registry.getManifest(site.repository, referrers[0]?.digest ?? ''))?.manifest as { layers: Array<{ digest: string }> };
    expect(referrer.layers[0]?.digest).toBe(answered.provenance);
    const signed = envelope.parse(JSON.parse((await registry.getBlob(site.repository, answered.provenance ?? '', 1 << 20)).toString()));
    const beat = await eventually(() =>
      there(
        mesh.control.beats.find((one) => one.builder === 'builder-1'),
        'a beat',
      ),
    );
    expect(verify(signed, [beat.publicKey], STATEMENT_TYPE)).toMatchObject({
      _type: 'https://in-toto.io/Statement/v1',
      predicateType: 'https://slsa.dev/provenance/v1',
      subject: [
        { name: 'site', digest: { sha256: site.digest.slice(7) } },
        { name: 'tool', digest: { sha256: tool.digest.slice(7) } },
      ],
      predicate: {
        buildDefinition: {
          externalParameters: { module: repository.module, repository: repository.url, ref: 'refs/heads/main', commit },
          resolvedDependencies: [{ uri: `git+${repository.url}@refs/heads/main`, digest: { gitCommit: commit } }],
        },
        runDetails: { builder: { id: 'urn:tally:builder:home:builder-1' }, metadata: { invocationId: `${request}/1` } },
      },
    });

    // The log, live and kept.
    const kept = gunzipSync(await registry.getBlob(site.repository, answered.log ?? '', 1 << 20)).toString();
    expect(kept).toContain('\ntested\n');
    expect(await registry.getManifest(site.repository, `log-${request}`)).not.toBeNull();
    await eventually(() =>
      there(
        mesh.control.linesOf(request).find((line) => line === 'tested'),
        'the last line',
      ),
    );
    expect(mesh.control.linesOf(request).join('\n')).toBe(kept.trimEnd());

    expect(leftIn(mesh.builder.home)).toEqual([]);
  });

  test('without commands and artifacts is fit, with nothing to sign', async () => {
    expect(await buildOf({})).toMatchObject({ outcome: 'fit', artifacts: [], provenance: null });
  });

  const endings: Array<[what: string, build: Record<string, unknown>, outcome: string, step: string, reason: RegExp]> = [
    ['whose test fails', { run: 'true', test: 'echo 2 of 3 passed; exit 1' }, 'failed', 'test', /^test: exit status 1 · 2 of 3 passed$/],
    ['whose run fails', { run: 'nosuchcommand' }, 'failed', 'run', /^run: exit status 127 · .*nosuchcommand: not found$/],
    ['whose run crashes', { run: "sh -c 'kill -SEGV $$'" }, 'failed', 'run', /^run: exit status 139 \(SIGSEGV\)/],
    [
      'that says it cannot now',
      { test: 'echo the database is away; exit 75' },
      'environment',
      'test',
      /^test: exit status 75 · the database is away$/,
    ],
    ['whose fetch fails', { fetch: 'echo no route; exit 1', run: 'true' }, 'environment', 'fetch', /^fetch: exit status 1 · no route$/],
    [
      'that takes longer than it declares',
      { run: 'true', test: 'sleep 60', timeout: '1s' },
      'failed',
      'test',
      /^test: took longer than the 1 s of build\.timeout$/,
    ],
    [
      'that needs more memory than it declares',
      { run: 'node -e "const a = []; setInterval(() => a.push(Buffer.alloc(16 << 20, 1)), 1)"', memory: '160M' },
      'failed',
      'run',
      /^run: went beyond the 160 MiB of build\.memory$/,
    ],
  ];
  test.each(endings)('%s is what it is', async (_what, build, outcome, step, reason) => {
    const answered = await buildOf(build);
    expect(answered).toMatchObject({ outcome, step, reason: expect.stringMatching(reason) });
    expect(answered.log).toMatch(/^sha256:/);
    expect(leftIn(mesh.builder.home)).toEqual([]);
  });

  test('counts run and test against one time', async () => {
    expect(await buildOf({ run: 'sleep 1.2', test: 'sleep 1.2', timeout: '2s' })).toMatchObject({ outcome: 'failed', step: 'test' });
  });

  const outputs: Array<[what: string, build: Record<string, unknown>, artifacts: Record<string, unknown>, reason: RegExp]> = [
    ['that is missing', { run: 'true' }, { site: { archive: 'out/' } }, /^artifact site: out\/ is not there after the build/],
    ['that is a file', { run: 'echo > out' }, { site: { archive: 'out' } }, /not a directory: write `file: out`/],
    ['that is a directory', { run: 'mkdir out' }, { tool: { file: 'out' } }, /not a file: write `archive: out`/],
    ['that is a link out of the tree', { run: 'ln -s /etc out' }, { site: { archive: 'out' } }, /link out of the tree/],
  ];
  const unpackable: typeof outputs = [
    ['with a link out of it', { run: 'mkdir out; ln -s ../../etc out/etc' }, { site: { archive: 'out' } }, /^artifact site: .*link out of the tree/],
    ['with a pipe in it', { run: 'mkdir out; mkfifo out/pipe' }, { site: { archive: 'out' } }, /^artifact site: /],
    ['with a name that is no UTF-8', { run: 'mkdir out; touch "$(printf "out/a\\377")"' }, { site: { archive: 'out' } }, /^artifact site: /],
    ['that is a bomb', { run: 'mkdir out; head -c 200M /dev/zero > out/zeros' }, { site: { archive: 'out' } }, /^artifact site: .*times its size/],
  ];
  test.each([...outputs, ...unpackable])('with an output %s has failed', async (_what, build, artifacts, reason) => {
    expect(await buildOf(build, artifacts)).toMatchObject({ outcome: 'failed', step: 'pack', reason: expect.stringMatching(reason) });
  });

  test('reaches the network in fetch alone, unless its manifest says otherwise', async () => {
    const server = createServer((socket) => socket.end('x'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const reach = `node -e "require('net').connect(${port}, '127.0.0.1').on('data', () => process.exit(0)).on('error', (e) => { console.log(e.code); process.exit(1) })"`;
    try {
      expect(await buildOf({ fetch: reach, run: reach })).toMatchObject({
        outcome: 'failed',
        step: 'run',
        reason: 'run: exit status 1 · ECONNREFUSED',
      });
      expect(await buildOf({ run: 'true', test: reach })).toMatchObject({ outcome: 'failed', step: 'test' });
      expect(await buildOf({ run: reach, network: true })).toMatchObject({ outcome: 'fit' });
    } finally {
      server.close();
    }
  });

  test('sees its own environment and no other', async () => {
    process.env.AMQP_URL = 'amqp://builder:a-secret@broker';
    try {
      const answered = await buildOf({
        env: { GREETING: 'hello' },
        run: 'env | cut -d= -f1 | sort | tr "\\n" " "; echo; for p in /proc/[0-9]*; do tr "\\0" "\\n" < $p/environ; done | grep -c a-secre[t] || true; echo $GREETING $HOME $TZ $SOURCE_DATE_EPOCH',
      });
      const at = answered.lines.findIndex((line) => line.includes('SOURCE_DATE_EPOCH'));
      const names = answered.lines.find((line) => line.startsWith('CARGO_HOME') || line.startsWith('CI '));
      expect(names?.trim().split(' ').sort()).toEqual(
        [
          ...[
            'CARGO_HOME',
            'CARGO_NET_OFFLINE',
            'CI',
            'GOCACHE',
            'GOFLAGS',
            'GOMODCACHE',
            'GOPATH',
            'GOPROXY',
            'GREETING',
            'HOME',
            'LANG',
            'PATH',
            'PIP_CACHE_DIR',
            'PWD',
          ],
          ...['PYTHONDONTWRITEBYTECODE', 'SOURCE_DATE_EPOCH', 'TMPDIR', 'TZ', 'npm_config_cache', 'npm_config_update_notifier'],
        ].sort(),
      );
      expect(at).toBeGreaterThan(-1);
      expect(answered.lines).toContain('0');
      expect(answered.lines).toContain('hello /tmp/home UTC 315532800');
      expect(JSON.stringify(mesh.control.logs)).not.toContain('a-secret');
    } finally {
      delete process.env.AMQP_URL;
    }
  });

  test('has its home from build to build, and it alone', async () => {
    const repository = newRepository();
    const first = repository.commit(manifestOf(repository, { run: 'echo kept > $HOME/note; ls /tmp/home' }));
    await answerOf(mesh.control, repository, first);
    const second = repository.commit(manifestOf(repository, { run: 'cat $HOME/note' }));
    expect(await answerOf(mesh.control, repository, second)).toMatchObject({ outcome: 'fit' });
    expect(await buildOf({ run: 'cat $HOME/note' })).toMatchObject({ outcome: 'failed' });
  });

  test('gives the same digests from two builders in different places', async () => {
    const other = await startControl();
    const places = join(scratch(), 'a', 'place', 'elsewhere');
    const second = await startTestBuilder(other, { name: 'builder-2', home: places });
    try {
      const repository = newRepository();
      const commit = repository.commit({
        ...manifestOf(
          repository,
          { run: 'mkdir out; go build -o out/m .; pwd > out/where; cp main.go out; ln -s m out/link', test: 'out/m 2>&1 | grep -q hello' },
          { all: { archive: 'out' }, tool: { file: 'out/m' } },
        ),
        'go.mod': 'module example.org/m\n\ngo 1.20\n',
        'main.go': 'package main\n\nfunc main() { println("hello") }\n',
      });
      const both = [mesh.control, other].map((control) => answerOf(control, repository, commit, { timeoutMs: 60_000 }).then(fitOf));
      const [one, two] = await Promise.all(both);
      if (one === undefined || two === undefined) throw new Error('two answers');
      expect(two.artifacts).toEqual(one.artifacts);
      expect(one.artifacts).toHaveLength(2);
    } finally {
      await second.stop();
      await other.close();
    }
  }, 180_000);

  test('may pack its whole tree, loops of links and all, without the repository', async () => {
    const answered = await buildOf({ run: 'ln -s b a; ln -s a b; git rev-parse HEAD' }, { all: { archive: '.' } });
    const registry = createRegistryClient({ url: registryUrl() });
    const file = join(scratch(), 'all.tar.gz');
    const [all] = fitOf(answered).artifacts;
    await registry.fetchBlobToFile(all?.repository ?? '', all?.blob ?? '', file);
    expect(execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trim().split('\n').sort()).toEqual(['a', 'b', 'module.yaml']);
  });

  test('of a commit whose manifest is broken or names another module has failed', async () => {
    const repository = newRepository();
    const commit = repository.commit({ 'module.yaml': 'module: other\n' });
    expect(await answerOf(mesh.control, repository, commit)).toMatchObject({
      outcome: 'failed',
      step: 'checkout',
      reason: expect.stringMatching(/^module\.yaml:1 module the file says `other`/),
    });
  });

  test('of a commit that is not there is environmental', async () => {
    const repository = newRepository();
    repository.commit(manifestOf(repository, {}));
    expect(await answerOf(mesh.control, repository, 'f'.repeat(40))).toMatchObject({ outcome: 'environment', step: 'checkout' });
  });
});

describe('the builder', () => {
  test('has a key that only it can read', () => {
    const key = readFileSync(join(mesh.builder.home, 'signing.key'), 'utf8');
    expect(key).toContain('PRIVATE KEY');
  });
});
