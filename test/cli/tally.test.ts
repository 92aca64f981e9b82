/** The command as a person types it: a real process against a started API. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import stringWidth from 'string-width';
import type { z } from 'zod';
import * as schema from '../../src/schema/api';
import * as graphSchema from '../../src/schema/graphApi';
import { apiOfFile } from '../support/api';
import { asking, BIN, type Ran, runTally } from '../support/command';
import { aDay, answeredBuild, COMMITS, inStep } from '../support/meshes';

const api = apiOfFile();
let elsewhere: string;

beforeAll(() => {
  elsewhere = mkdtempSync(join(tmpdir(), 'tally-cli-'));
});

afterAll(() => rmSync(elsewhere, { recursive: true, force: true }));

function run(words: readonly string[], env: Record<string, string>, options: { cwd?: string; preload?: string } = {}): Promise<Ran> {
  return runTally(words, { cwd: elsewhere, ...options, env: { HOME: elsewhere, ...env } });
}

function tally(...words: string[]): Promise<Ran> {
  return run(words, asking(api));
}

/** Clocks and durations differ from run to run; everything else is exact. */
function timeless(text: string): string {
  return text.replace(/(\d{1,2} [A-Z][a-z]{2} )?\d\d:\d\d/g, 'HH:MM').replace(/\b\d+ (s|min)\b/g, 'N $1');
}

describe('tally status', () => {
  test('is one glance of 80 columns, most urgent first, and ends with 1', async () => {
    await aDay(api.db);
    const { status, out, err } = await tally('status');
    expect([status, err]).toEqual([1, '']);
    expect(timeless(out)).toMatchInlineSnapshot(`
"mesh home · 6 modules, 3 in step · 3 nodes, 1 away since HH:MM

NEEDS YOU
  kiosk      failed at 9c1f0e2 since HH:MM · 1 of 14 tests
             77ab310 stays declared
             → tally log kiosk
  gamma      stuck: service/greeter, 5 reports since HH:MM · exit status 203
             → tally node show gamma
MOVING
  meshboard  source 4f2c1a9 · building on builder-1 for N s · applied on 3
IN STEP      board-types · core · site
"
`);
    for (const line of out.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(80);
  });

  test('ends with 0 when all is in step', async () => {
    for (const module of ['core', 'site']) await inStep(api.db, module);
    const { status, out } = await tally('status');
    expect(status).toBe(0);
    expect(out).toMatchInlineSnapshot(`
"mesh home · 2 modules, 2 in step · 0 nodes

IN STEP      core · site
"
`);
  });

  test('of an empty mesh says what to do', async () => {
    const { status, out } = await tally('status');
    expect([status, out]).toEqual([0, expect.stringContaining('tally module add')]);
  });

  test('of one module shows its line, nodes and builds', async () => {
    await aDay(api.db);
    const { status, out } = await tally('status', 'greeter');
    expect(status).toBe(1);
    expect(timeless(out)).toMatchInlineSnapshot(`
"greeter  source 77ab310 · built from 77ab310 · fit · declared on 1 · applied on
0, 1 outstanding (gamma stuck on service/greeter)
stuck: gamma: service/greeter · exit status 203
→ tally why greeter

source   main of https://git.example/greeter.git
declare  ask, said by the mesh
run      http://temporal.test/namespaces/default/workflows/module%2Fgreeter

nodes
  gamma  77ab310  outstanding since HH:MM, nothing applied yet
    5 reports since HH:MM failed on service/greeter: exit status 203

builds, newest first
  77ab310  HH:MM  build-greeter  fit, effective
"
`);
  });

  test('why does not send on to why', async () => {
    await aDay(api.db);
    const { out } = await tally('why', 'greeter');
    expect(out).toContain('stuck since');
    expect(out).not.toContain('→ tally why greeter');
  });

  test('of one node shows what it was sent and holds', async () => {
    await aDay(api.db);
    const { status, out } = await tally('status', 'gamma');
    expect(status).toBe(1);
    expect(timeless(out)).toMatchInlineSnapshot(`
"gamma  up, last beat HH:MM · 0 of 1 module applied

site      home
sending   never told
sent      nothing yet
received  nothing yet
applied   nothing yet
host      not seen yet
key       taken from its first beat
seal key  none shown: no secret can be sealed to it

modules
  greeter  77ab310  outstanding since HH:MM, nothing applied yet
    5 reports since HH:MM failed on service/greeter: exit status 203
"
`);
  });

  test('of a name that is none says which was meant, and ends with 2', async () => {
    await aDay(api.db);
    expect(await tally('status', 'meshbord')).toEqual({ status: 2, out: '', err: 'there is no module meshbord: did you mean meshboard?\n' });
    expect(await tally('status', 'gama')).toEqual({ status: 2, out: '', err: 'there is no node gama: did you mean gamma?\n' });
  });

  test('shows nothing that a terminal would obey', async () => {
    await inStep(api.db, 'core');
    await api.db.query(
      `update module set line = 'source 77ab310' || chr(27) || ']0;owned' || chr(7) || chr(10) || 'fake line', needs_person = true, in_step = false, situation = 'failed'`,
    );
    const { out } = await tally('status');
    expect(out.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    expect(out).not.toMatch(/^fake line/m);
  });
});

describe('--json', () => {
  const asked: Array<[string[], z.ZodType]> = [
    [['status'], schema.statusAnswer],
    [['status', 'kiosk'], schema.moduleAnswer],
    [['status', 'gamma'], schema.nodeAnswer],
    [['plan'], graphSchema.planAnswer],
    [['plan', '--if', 'core'], graphSchema.planAnswer],
    [['graph'], graphSchema.graphAnswer],
    [['graph', 'kiosk', '--inbound'], graphSchema.graphAnswer],
    [['why', 'kiosk'], schema.whyAnswer],
    [['log', 'core'], schema.logAnswer],
    [['module', 'list'], schema.moduleList],
    [['module', 'show', 'kiosk'], schema.moduleAnswer],
    [['module', 'webhook', 'kiosk'], schema.webhookAnswer],
    [['node', 'list'], schema.nodeList],
    [['node', 'show', 'gamma'], schema.nodeAnswer],
    [['node', 'add', 'delta', '--set', 'port=1'], schema.addedNodeAnswer],
    [['doctor'], schema.doctorAnswer],
    [['hold', 'kiosk', '--why', 'fair week'], schema.doneAnswer],
    [['nudge', 'kiosk'], schema.doneAnswer],
    [['build', '--behind'], schema.behindAnswer],
    [['push', '--behind'], schema.behindAnswer],
    [['assign', 'kiosk', 'alpha'], schema.doneAnswer],
    [['unassign', 'kiosk', 'alpha'], schema.doneAnswer],
  ];

  test('is the API’s answer for every verb', async () => {
    await aDay(api.db);
    for (const [words, form] of asked) {
      const { out, err } = await tally(...words, '--json');
      expect([words, err]).toEqual([words, '']);
      expect(() => form.parse(JSON.parse(out))).not.toThrow();
    }
  }, 120_000);
});

describe('verbs that decide', () => {
  test('need a why', async () => {
    await inStep(api.db, 'kiosk');
    for (const verb of ['declare', 'hold', 'release', 'rollback', 'cancel']) {
      const { status, err } = await tally(verb, 'kiosk');
      expect([status, err]).toEqual([2, "required option '--why <text>' not specified\n"]);
    }
    expect((await tally('hold', 'kiosk', '--why', ' ')).status).toBe(2);
  });

  test('say in one line what is so now', async () => {
    await inStep(api.db, 'kiosk');
    expect(await tally('hold', 'kiosk', '--why', 'fair week')).toEqual({
      status: 0,
      out: 'kiosk is held: it builds and is judged, and nothing is declared until tally release kiosk\n',
      err: '',
    });
  });

  test('that are refused say why and end with 2', async () => {
    await inStep(api.db, 'kiosk');
    expect(await tally('release', 'kiosk', '--why', 'over')).toEqual({ status: 2, out: '', err: 'kiosk is not held: nothing to release\n' });
  });
});

describe('what is typed wrong', () => {
  test.each([
    ['a verb that is none', ['stauts'], "unknown command 'stauts' (Did you mean status?)\n"],
    ['a verb of a group that is none', ['module', 'ad'], "unknown command 'ad' (Did you mean add?)\n"],
    ['an option that is none', ['status', '--jsno'], "unknown option '--jsno' (Did you mean --json?)\n"],
    ['an argument that is missing', ['why'], "missing required argument 'module'\n"],
    ['one too many', ['why', 'a', 'b'], "too many arguments for 'why'. Expected 1 argument but got 2.\n"],
    ['a fact without a value', ['node', 'add', 'alpha', '--set', 'port'], 'port is no fact: say KEY=VALUE, as in meshboard.port=8081\n'],
    ['a graph in both directions', ['graph', 'kiosk', '--inbound', '--outbound'], '--inbound or --outbound: say one of the two\n'],
    [
      'a registry without a key',
      ['verify', 'kiosk', '--registry', 'http://127.0.0.1:9'],
      '--registry goes with --key: without a key the control plane asks its own registry, by the keys of its builders\n',
    ],
    ['a key without a registry', ['verify', 'tally/kiosk:b1', '--key', 'x'], 'which registry? say --registry URL or set REGISTRY_URL\n'],
    [
      'a key that is none',
      ['verify', 'tally/kiosk:b1', '--key', 'x', '--registry', 'http://127.0.0.1:9'],
      'x is no public key: give an ed25519 key in base64 or PEM, or a file that holds one\n',
    ],
    ['build without a name', ['build'], 'build what? name a module, or say --behind for all that have no verdict\n'],
    [
      'a shell that is none',
      ['completion', 'csh'],
      "command-argument value 'csh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.\n",
    ],
  ])('%s is one line and a 2', async (_, words, said) => {
    expect(await tally(...words)).toEqual({ status: 2, out: '', err: said });
  });
});

describe('where the control plane is', () => {
  test('that does not answer is said in one line with what to do', async () => {
    const { status, out, err } = await run(['status'], { TALLY_URL: 'http://127.0.0.1:9', TALLY_TOKEN: 'x' });
    expect([status, out]).toEqual([1, '']);
    expect(err).toBe(
      'the control plane at http://127.0.0.1:9 does not answer (ECONNREFUSED): start it with "tally up", or say where it is with TALLY_URL\n',
    );
  });

  test('is not known: that is said', async () => {
    const { status, err } = await run(['status'], {});
    expect([status, err]).toEqual([2, 'no control plane is known here: start one with "tally up", or set TALLY_URL and TALLY_TOKEN\n']);
  });

  test('is found by client.json of TALLY_HOME, of the clone above, of the home folder', async () => {
    await inStep(api.db, 'core');
    const client = JSON.stringify({ url: api.url, token: api.token });
    const root = mkdtempSync(join(tmpdir(), 'tally-clone-'));
    for (const folder of ['.tally/home', 'src/deep', 'own/tally', 'other']) mkdirSync(join(root, folder), { recursive: true });
    for (const folder of ['.tally/home', 'own/tally', 'other']) writeFileSync(join(root, folder, 'client.json'), client, { mode: 0o600 });
    expect((await run(['status'], {}, { cwd: join(root, 'src', 'deep') })).status).toBe(0);
    expect((await run(['status'], { XDG_CONFIG_HOME: join(root, 'own') })).status).toBe(0);
    expect((await run(['status'], { TALLY_HOME: join(root, 'other') })).status).toBe(0);
    chmodSync(join(root, 'other', 'client.json'), 0o644);
    const open = await run(['status'], { TALLY_HOME: join(root, 'other') });
    expect([open.status, open.err]).toEqual([2, expect.stringContaining('chmod 600')]);
    // A token is never sent to another server than the one it stands with.
    const foreign = await run(['status'], { TALLY_HOME: join(root, '.tally', 'home'), TALLY_URL: `${api.url.replace('127.0.0.1', 'localhost')}` });
    expect([foreign.status, foreign.err]).toEqual([2, expect.stringContaining('a token is needed')]);
    rmSync(root, { recursive: true, force: true });
  });

  test('answers something else: that is said', async () => {
    const { status, err } = await run(['status'], { TALLY_URL: `${api.url}/healthz?`, TALLY_TOKEN: 'x' });
    expect([status, err.split('\n').length]).toEqual([1, 2]);
    expect(err).toContain('no control plane that this tally can read');
  });
});

describe('tally log', () => {
  test('prints the log alone, so that it can be piped, and ends with 1 for a failed build', async () => {
    await inStep(api.db, 'kiosk');
    await answeredBuild(api.db, { id: 'build-1', module: 'kiosk', commit: COMMITS.failed, verdict: 'failed', log: 'sha256:log' });
    api.logs.set('sha256:log', '# test\n\u001b[31mnot ok\u001b[0m\u001b]0;owned\u0007\n');
    const { status, out, err } = await tally('log', 'kiosk');
    expect([status, out]).toEqual([1, '# test\nnot ok]0;owned\n']);
    expect(err).toContain('build build-1 of 9c1f0e2: failed');
  });

  test('-f follows a build to its end', async () => {
    await inStep(api.db, 'kiosk');
    await api.db.query(
      `insert into request (id, kind, module, commit, closure, platform, body, state, taken_at, taken_by) values ('build-2', 'build', 'kiosk', $1, 'c', 'linux-amd64', '{}', 'taken', now(), 'builder-1')`,
      [COMMITS.fit],
    );
    await api.db.query(`insert into build (id, module, commit, closure) values ('build-2', 'kiosk', $1, 'c')`, [COMMITS.fit]);
    await api.db.query(`insert into log_line (request_id, attempt, number, text) values ('build-2', 1, 0, 'one')`);
    const following = tally('log', 'kiosk', '-f');
    await api.db.query(`insert into log_line (request_id, attempt, number, text) values ('build-2', 1, 1, 'two')`);
    api.logs.set('sha256:whole', 'one\ntwo\nthree\n');
    await api.db.query(`update build set verdict = 'fit', answered_at = now(), log = 'sha256:whole' where id = 'build-2'`);
    await api.db.query(`update request set state = 'answered', answered_at = now() where id = 'build-2'`);
    expect(await following).toMatchObject({ status: 0, out: 'one\ntwo\nthree\n' });
  });
});

test('tally open prints the board’s address and where the token is', async () => {
  expect(await tally('open')).toEqual({ status: 0, out: `${api.url}/\nlog in with the token in TALLY_TOKEN\n`, err: '' });
});

test('tally doctor has a line for each thing, with what to do', async () => {
  await aDay(api.db);
  const { status, out } = await tally('doctor');
  expect(status).toBe(1);
  expect(out).toMatch(/^ok {5}control plane {5}answers at/m);
  expect(out).toMatch(/^not ok builders/m);
  expect(out).toContain('→ start one: tally builder');
  const away = await run(['doctor'], { TALLY_URL: 'http://127.0.0.1:9', TALLY_TOKEN: 'x' });
  expect([away.status, away.out]).toEqual([1, expect.stringMatching(/^not ok control plane/)]);
});

describe('every verb', () => {
  test('has a help with examples', async () => {
    const { out } = await tally('--help');
    const verbs = [...out.matchAll(/^ {2}([a-z]+)/gm)].map(([, verb = '']) => verb).filter((verb) => verb !== 'help');
    expect(verbs).toEqual(
      expect.arrayContaining(['status', 'plan', 'graph', 'why', 'build', 'push', 'log', 'module', 'node', 'up', 'host', 'builder']),
    );
    expect(verbs).not.toContain('names');
    for (const verb of verbs) {
      const help = (await tally(verb, '--help')).out;
      const [, inner] = /^Commands:\n {2}([a-z]+)/m.exec(help) ?? [];
      expect(inner === undefined ? help : (await tally(verb, inner, '--help')).out).toContain('Examples:\n  $ ');
    }
  }, 120_000);

  test('starts without what only servers need', async () => {
    const preload = join(elsewhere, 'loaded.js');
    writeFileSync(preload, `process.on('exit', () => process.stderr.write(Object.keys(require.cache).join('\\n')));`);
    await inStep(api.db, 'core');
    const { err } = await run(['status'], asking(api), { preload });
    const packages = new Set([...err.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)\//g)].map(([, name]) => name));
    expect([...packages].sort()).toEqual(['commander', 'picocolors']);
  });
});

describe('completion', () => {
  async function complete(line: string[]): Promise<string> {
    const script = join(elsewhere, 'complete.bash');
    const { out } = await tally('completion', 'bash');
    const words = line.map((word) => `'${word}'`).join(' ');
    writeFileSync(
      script,
      `tally() { ${process.execPath} ${BIN} "$@"; }\n${out}\nCOMP_WORDS=(tally ${words}); COMP_CWORD=${line.length}; _tally; echo "\${COMPREPLY[@]}"\n`,
    );
    return await new Promise((resolve, reject) => {
      const env = { PATH: process.env.PATH, HOME: elsewhere, ...asking(api) };
      execFile('bash', ['--norc', script], { env, timeout: 20_000 }, (error, stdout) => (error === null ? resolve(stdout.trim()) : reject(error)));
    });
  }

  test('of bash completes verbs, verbs of groups, options and the names that there are', async () => {
    await aDay(api.db);
    expect(await complete(['sta'])).toBe('status');
    expect(await complete(['module', 'w'])).toBe('webhook');
    expect(await complete(['hold', 'kio'])).toBe('kiosk');
    expect(await complete(['node', 'show', 'ga'])).toBe('gamma');
    expect(await complete(['hold', 'kiosk', '--w'])).toBe('--why');
  });

  test('is written for zsh and fish too', async () => {
    expect((await tally('completion', 'zsh')).out).toMatch(/^#compdef tally/);
    expect((await tally('completion', 'fish')).out).toContain('complete -c tally');
  });
});
