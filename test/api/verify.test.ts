/** `verify` over a real registry, with artifacts that a builder's own code pushed and signed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { attachProvenance } from '../../src/builder/provenance';
import { closureOf } from '../../src/domain/closure';
import { canonicalDigest, generateKeyPair, type KeyPair } from '../../src/link';
import { createRegistryClient, pushArtifact } from '../../src/registry';
import { failure } from '../../src/schema/api';
import { type VerifyAnswer, verifyAnswer } from '../../src/schema/graphApi';
import type { Input } from '../../src/schema/messages';
import { type Called, startApi, type TestApi } from '../support/api';
import { asking, type Ran, runTally } from '../support/command';
import { answeredBuild, COMMITS, inStep } from '../support/meshes';
import { registryUrl } from '../support/servers';

const registry = createRegistryClient({ url: registryUrl() });
const mine = generateKeyPair();
const other = generateKeyPair();

let api: TestApi;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tally-verify-'));
  api = await startApi({ registry });
});

beforeEach(async () => {
  await api.reset();
  await api.db.query(
    `insert into builder (name, platforms, public_key, version, last_beat_at) values ('builder-1', '{linux-amd64}', $1, '1', now())`,
    [mine.publicKey],
  );
});

afterAll(async () => {
  await api.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Made {
  readonly repository: string;
  readonly digest: string;
  readonly input: Input;
}

/** A file in the registry, with the statement that a builder makes of it; `closure` is what it records. */
async function make(module: string, inputs: readonly Input[] = [], key: KeyPair = mine, closure?: string): Promise<Made> {
  const path = join(folder, ulid());
  const repository = `tally/${module}-${ulid().toLowerCase()}`;
  writeFileSync(path, `of ${module} ${ulid()}`);
  const pushed = await pushArtifact(registry, { repository, kind: 'file', path, tag: 'b1' });
  const commit = COMMITS.fit;
  await attachProvenance(registry, key, {
    request: {
      v: 1,
      kind: 'build',
      request: 'b-1',
      attempt: 1,
      mesh: 'home',
      module,
      repository: `https://git.example/${module}.git`,
      ref: 'main',
      commit,
      platform: 'linux-amd64',
      closure: closure ?? closureOf({ commit, inputs }, canonicalDigest),
      inputs: [...inputs],
    },
    builder: 'builder-1',
    inputs,
    artifacts: [{ name: 'web', kind: 'file', repository, pushed }],
    startedAt: '2026-11-29T14:00:00.000Z',
    finishedAt: '2026-11-29T14:01:00.000Z',
  });
  const { digest, size, layer } = pushed;
  return {
    repository,
    digest,
    input: { module, artifact: 'web', kind: 'file', repository, digest, blob: layer.digest, size, commit, names: [], test: false },
  };
}

async function keep(module: string, { repository, digest }: Made): Promise<void> {
  await inStep(api.db, module);
  await answeredBuild(api.db, { id: `build-${module}`, module, commit: COMMITS.fit, verdict: 'fit' });
  await api.db.query(`insert into artifact (build_id, name, kind, repository, digest, blob, size) values ($1, 'web', 'file', $2, $3, $3, 1)`, [
    `build-${module}`,
    repository,
    digest,
  ]);
  await api.db.query('update module set effective_build = $2 where name = $1', [module, `build-${module}`]);
}

async function ask(artifact: string): Promise<Called> {
  return await api.call('GET', `/api/v1/verify?${new URLSearchParams({ artifact })}`);
}

async function verified(artifact: string): Promise<VerifyAnswer['artifacts'][number]> {
  const answer = verifyAnswer.parse((await ask(artifact)).body);
  const [one] = answer.artifacts;
  if (one === undefined || answer.artifacts.length !== 1) throw new Error('one artifact was asked about');
  expect(answer.isRight).toBe(one.isRight);
  return one;
}

test('by module, by its artifact, by digest and by repository and digest it is the same', async () => {
  const core = await make('core');
  const made = await make('kiosk', [core.input]);
  await keep('kiosk', made);
  const whole = `${made.repository}@${made.digest}`;
  for (const words of ['kiosk', 'kiosk/web', made.digest, whole]) {
    expect(await verified(words)).toMatchObject({
      artifact: whole,
      isRight: true,
      built: { module: 'kiosk', commit: COMMITS.fit },
      inputs: [{ module: 'core', artifact: 'web', digest: core.digest, isThere: true }],
    });
  }
  const { findings, signedBy } = await verified('kiosk');
  expect(signedBy).toMatch(/^builder-1 \([0-9a-f]{12}\)$/);
  expect(findings.map((one) => one.says)).toEqual([
    `there: file ${whole}`,
    `signature: by the key of ${signedBy}`,
    'subject: it is web of kiosk',
    expect.stringMatching(/^closure: commit 77ab310 and 1 input /),
    'dependencies: each is in the registry',
  ]);
});

test('signed by a key that no builder here has, nothing of it counts', async () => {
  const made = await make('kiosk', [], other);
  expect(await verified(`${made.repository}@${made.digest}`)).toMatchObject({ isRight: false, signedBy: null, built: null });
});

test('a closure that does not follow from what it was built of is not right, and neither is an input that is gone', async () => {
  const wrong = await make('kiosk', [], mine, `sha256:${'0'.repeat(64)}`);
  const { isRight, findings } = await verified(`${wrong.repository}@${wrong.digest}`);
  expect([isRight, findings.filter((one) => !one.isRight).map((one) => one.says)]).toEqual([false, [expect.stringMatching(/^closure: /)]]);
  const core = await make('core');
  const gone = { ...core.input, digest: `sha256:${'1'.repeat(64)}` };
  const made = await make('kiosk', [gone]);
  const found = await verified(`${made.repository}@${made.digest}`);
  expect(found.findings.filter((one) => !one.isRight).map((one) => one.says)).toEqual([
    'dependencies: the registry no longer holds core/web',
    `input core/web: the registry does not hold ${core.repository}@${gone.digest}`,
  ]);
});

describe('the command', () => {
  function tally(words: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
    return runTally(['verify', ...words], { cwd: folder, env: { ...asking(api), ...env } });
  }

  test('says one finding a line, and ends with 1 when one of them is not right', async () => {
    const core = await make('core');
    const made = await make('kiosk', [core.input]);
    await keep('kiosk', made);
    const right = await tally(['kiosk']);
    expect([right.status, right.out, right.err]).toEqual([0, expect.stringMatching(/^ {2}ok {5}signature: by the key of builder-1/m), '']);
    await api.db.query('update builder set public_key = $1', [other.publicKey]);
    const wrong = await tally(['kiosk']);
    expect([wrong.status, wrong.out]).toEqual([1, expect.stringMatching(/^ {2}not ok signature: its provenance does not count/m)]);
    expect((await tally(['kiosk', '--json'])).status).toBe(1);
  });

  test('with a key asks the registry and nobody else', async () => {
    const made = await make('kiosk', [], other);
    const whole = `${made.repository}@${made.digest}`;
    const file = join(folder, 'other.pub');
    writeFileSync(file, other.publicKey);
    const nobody = { TALLY_URL: 'http://127.0.0.1:9', REGISTRY_URL: registryUrl() };
    expect(await tally([whole, '--key', file], nobody)).toMatchObject({ status: 0, out: expect.stringContaining(`by the key of ${file}`) });
    expect(await tally([whole, '--key', mine.publicKey], nobody)).toMatchObject({ status: 1 });
    expect(await tally([whole, '--key', mine.publicKey, '--key', other.publicKey], nobody)).toMatchObject({ status: 0 });
  });
});

test('what names no artifact is one line that says what to write', async () => {
  await keep('kiosk', await make('kiosk'));
  await inStep(api.db, 'core');
  const said = async (artifact: string): Promise<unknown[]> => {
    const { status, body } = await ask(artifact);
    return [status, failure.parse(body).error];
  };
  expect(await said('kisok')).toEqual([404, 'there is no module kisok: did you mean kiosk?']);
  expect(await said('kiosk/wbe')).toEqual([404, 'there is no artifact wbe of kiosk: did you mean web?']);
  expect(await said('core')).toEqual([409, 'core has no fit build with artifacts yet: tally why core']);
  expect(await said(`sha256:${'2'.repeat(64)}`)).toEqual([
    404,
    'no build of this mesh made sha256:222222222222…: say where it is, as repository@digest',
  ]);
  expect((await said('what?'))[0]).toBe(409);
  expect((await said(`tally/none@sha256:${'2'.repeat(64)}`))[0]).toBe(409);
});
