import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { keptSealKey } from '../../src/host/secrets';
import { generateSealKeyPair, sealToNode } from '../../src/link';
import type { SealedSecret } from '../../src/schema/declaration';
import { dice } from '../e2e/random';
import { eventually } from '../support/eventually';
import { action, file, type Machine, machine, service } from './machine';

/** What is sealed to a node is in its file, for its owner alone, and nowhere else on the machine. */

const FIRST = 'first-fFo2Qz8kT1nB7vXc3sLw9YpRj4mHd6Ue0aGi5t';
const SECOND = 'second-Zr1Kq7Wm3Xv9Bn5Ct2Lp8Ys4Jh6Fd0Gu_-Ea';
const CONTENT = 'db=postgres://board:${secret.bind.db.password}@db/board\nliteral=$${secret.x} root=${root}\n';

let m: Machine;

beforeEach(() => {
  m = machine();
});
afterEach(() => m.remove());

const failuresOf = ({ modules }: Awaited<ReturnType<Machine['apply']>>) => modules.flatMap(({ failures }) => failures);
const changesOf = ({ modules }: Awaited<ReturnType<Machine['apply']>>) => modules.flatMap(({ changes }) => changes);

async function sealed(text: string, over: { version?: number; key?: string; node?: string } = {}): Promise<SealedSecret> {
  const { version = 1, node = 'alpha' } = over;
  await m.host();
  const key = over.key ?? keptSealKey(m.state).publicKey;
  const about = { mesh: 'home', node, credential: 'board.db/password', version };
  return { credential: about.credential, version, sealed: await sealToNode(key, text, about) };
}

function holding(secret: SealedSecret, { path = '/etc/board.env', content = CONTENT, mode = '0600' } = {}) {
  const plain = file(path, content, { mode });
  return { ...plain, spec: { ...plain.spec, secrets: { 'bind.db.password': secret } } };
}

/** Every file of the machine that holds one of the texts, with its mode. */
function holders(...texts: string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const path of readdirSync(m.folder, { recursive: true }) as string[]) {
    const whole = join(m.folder, path);
    const stat = existsSync(whole) ? lstatSync(whole) : null;
    if (stat?.isFile() !== true) continue;
    const content = readFileSync(whole, 'latin1');
    if (texts.some((text) => content.includes(text.slice(0, 12)))) found[path] = (stat.mode & 0o7777).toString(8);
  }
  return found;
}

test('a sealed secret is filled into its file, for its owner alone, and stands nowhere else', async () => {
  const declared = [holding(await sealed(FIRST))];
  const pass = await m.apply(declared);
  expect(failuresOf(pass)).toEqual([]);
  expect(m.read('etc/board.env')).toBe(`db=postgres://board:${FIRST}@db/board\nliteral=\${secret.x} root=${m.root}\n`);
  expect(holders(FIRST)).toEqual({ 'root/etc/board.env': '600' });
  expect(JSON.stringify(pass)).not.toContain(FIRST);
  expect(statSync(join(m.state, 'seal.key')).mode & 0o777).toBe(0o600);
  m.restart();
  expect((await m.apply(declared)).hasChanged).toBe(false);
});

test('what drifted is mended: its content, and a mode by which others could read it', async () => {
  const declared = [holding(await sealed(FIRST))];
  await m.apply(declared);
  writeFileSync(join(m.root, 'etc/board.env'), 'meddled');
  expect(changesOf(await m.apply(declared))).toEqual([{ resource: 'file/etc/board.env', cause: 'corrective' }]);
  chmodSync(join(m.root, 'etc/board.env'), 0o644);
  expect(changesOf(await m.apply(declared))).toEqual([{ resource: 'file/etc/board.env', cause: 'corrective' }]);
  expect(holders(FIRST)).toEqual({ 'root/etc/board.env': '600' });
});

test('a new version takes the place of the old one, and both are gone when it is no longer declared', async () => {
  m.plant('etc/board.env', 'theirs', 0o644);
  await m.apply([holding(await sealed(FIRST))]);
  expect(changesOf(await m.apply([holding(await sealed(SECOND, { version: 2 }))]))).toEqual([
    { resource: 'file/etc/board.env', cause: 'intentional' },
  ]);
  expect(holders(FIRST, SECOND)).toEqual({ 'root/etc/board.env': '600' });
  expect(m.read('etc/board.env')).toContain(SECOND);
  expect((await m.apply([])).removed).toEqual(['file/etc/board.env']);
  expect(holders(FIRST, SECOND)).toEqual({});
  expect(m.tree()['etc/board.env']).toBe('644 theirs');
});

test('a secret that this node cannot open fails its file in one line, and nothing is written', async () => {
  const another = await sealed(FIRST, { key: generateSealKeyPair().publicKey });
  const reason = "the secret board.db/password in version 1 is not sealed to this node's key: tally node show alpha says which key the mesh seals to";
  const pass = await m.apply([holding(another), file('/after', 'x', { module: 'n' })]);
  expect(failuresOf(pass)).toEqual([{ resource: 'file/etc/board.env', message: reason }]);
  expect(Object.keys(m.tree())).toEqual(['after']);
  expect(failuresOf(await m.apply([holding(await sealed(FIRST, { node: 'beta' }))]))).toMatchObject([{ message: reason }]);
  expect(failuresOf(await m.apply([holding({ ...(await sealed(FIRST)), version: 2 })]))).toHaveLength(1);
});

test('what a command or a service says last is reported without a secret that it was given', async () => {
  const env = holding(await sealed(FIRST));
  const path = join(m.root, 'etc/board.env');
  const speaking = service('web', ['sh', '-c', `cat ${path} >&2; exit 1`], { stopWithin: 100 });
  const acting = { ...action('act', ['sh', '-c', `head -1 ${path}; exit 3`], ['false']), module: 'n', id: 'action/act' };
  const isSeen = async (): Promise<boolean> => {
    await m.apply([env]);
    return JSON.stringify((await m.host()).journal.entries.get('file:/etc/board.env')).includes('"seen"');
  };
  await eventually(isSeen);
  // A new process has opened nothing yet, and need not read the file again.
  m.restart();
  const [ofService, ofAction] = failuresOf(await m.apply([env, speaking, acting])).map(({ message }) => message);
  expect(ofAction).toContain('db=postgres://board:(a secret)@db/board');
  expect([ofService, ofAction].join()).not.toContain(FIRST.slice(0, 8));
});

test('what is undone may say what its file holds, also when no declaration names that any more: it is not reported', async () => {
  const env = holding(await sealed(FIRST));
  const made = action('db', ['true'], ['false'], { module: 'm' });
  const dropped = { ...made, spec: { ...made.spec, unless: ['test', '-e', join(m.root, 'made')], run: ['touch', join(m.root, 'made')] } };
  const undo = ['sh', '-c', `head -1 ${join(m.root, 'etc/board.env')}; exit 4`];
  await m.apply([env, { ...dropped, spec: { ...dropped.spec, undo } }]);
  m.restart();
  for (const pass of [await m.apply([]), await m.apply([])])
    expect(pass.left).toEqual([
      { module: 'm', resource: 'action/db', message: expect.stringContaining('status 4: db=postgres://board:(a secret)@db/board') },
    ]);
  expect(holders(FIRST)).toEqual({ 'root/etc/board.env': '600' });
});

test('half a secret, where a long last line is cut off, is not reported either', async () => {
  const env = holding(await sealed(FIRST), { content: '${secret.bind.db.password}' });
  const long = (most: number): string => `cat ${join(m.root, 'etc/board.env')}; head -c ${most} /dev/zero | tr '\\0' x`;
  const acting = action('act', ['sh', '-c', `${long(4_080)}; exit 3`], ['false'], { module: 'n' });
  // Its supervisor says how it ended, after it.
  const speaking = service('web', ['sh', '-c', `${long(4_034)}; echo; exit 1`], { stopWithin: 100 }, 'o');
  await m.apply([env, acting]);
  const said = await eventually(async () => {
    const messages = failuresOf(await m.apply([env, acting, speaking])).map(({ message }) => message);
    expect(messages).toEqual([expect.stringContaining('status 3: xxx'), expect.stringContaining('its last line: xxx')]);
    return messages;
  });
  expect(said.filter((message) => message.includes(FIRST.slice(-12)))).toEqual([]);
});

test('a service sees what its environment file says, at each start, and neither its command line nor its supervisor does', async () => {
  const key = { path: '/etc/web.env', content: '# of the board\nPASSWORD=${secret.bind.db.password}\n\nEMPTY=\n' };
  const out = join(m.folder, 'seen');
  const run = ['sh', '-c', `printf '%s/%s' "$PASSWORD" "$EMPTY" >${out}.new; mv ${out}.new ${out}; sleep 1000; :`];
  const web = service('web', run, { environmentFile: '/etc/web.env', env: { EMPTY: 'not' } });
  expect(failuresOf(await m.apply([holding(await sealed(FIRST), key), web]))).toEqual([]);
  await eventually(() => readFileSync(out, 'utf8') === `${FIRST}/`);
  rmSync(out);
  const change = changesOf(await m.apply([holding(await sealed(SECOND, { version: 2 }), key), web]));
  expect(change.map(({ resource }) => resource)).toEqual(['file/etc/web.env', 'service/web']);
  await eventually(() => readFileSync(out, 'utf8') === `${SECOND}/`);
  rmSync(out);
  expect(holders(FIRST, SECOND)).toEqual({ 'root/etc/web.env': '600' });
  const lines = readdirSync('/proc').flatMap((pid) => (/^\d+$/.test(pid) ? [readable(`/proc/${pid}/cmdline`)] : []));
  expect(lines.some((line) => line.includes(out))).toBe(true);
  expect(lines.filter((line) => line.includes(FIRST) || line.includes(SECOND))).toEqual([]);
});

test('an environment file that a shell and systemd would read otherwise is not begun with, and its line is not said', async () => {
  const web = service('web', ['sleep', '1000'], { environmentFile: '/etc/web.env' });
  const [missing] = failuresOf(await m.apply([web]));
  expect(missing?.message).toContain('cannot be read: ENOENT');
  for (const line of [`A="${FIRST}"`, `${FIRST} =x`, `A=${FIRST} `, `A=${FIRST}\\n`, `export A=${FIRST}`]) {
    const [failure] = failuresOf(await m.apply([file('/etc/web.env', `OK=1\n${line}\n`, { mode: '0600' }), web]));
    expect(failure?.message).toBe(`line 2 of its environment file ${join(m.root, 'etc/web.env')} is not NAME=value without quotes or backslashes`);
  }
});

/** KILL_SEED repeats a run. */
const seed = Number(process.env.KILL_SEED ?? Date.now() % 1_000_000);
const KILLS = 15;

test(`killed at any moment, a host leaves no secret half written or readable by others (seed ${seed})`, async () => {
  const roll = dice(seed);
  m.plant('etc/board.env', 'theirs', 0o644);
  const [one, two] = [await sealed(FIRST), await sealed(SECOND, { version: 2 })];
  const open = file('/etc/board.env', 'no secret', { mode: '0644' });
  // Long enough to be cut off in the middle.
  const content = CONTENT + 'x'.repeat(1 << 20);
  const lists = [[holding(one, { content })], [holding(two, { content, mode: '0400' })], [open], [holding(two, { content })], []];
  m.restart();
  const whole = [FIRST, SECOND].map((secret) =>
    content.replace('${secret.bind.db.password}', secret).replace('$${', '${').replace('${root}', m.root),
  );
  const listed = join(m.folder, 'lists.json');
  writeFileSync(listed, JSON.stringify(lists));
  for (let kill = 0; kill < KILLS; kill++) {
    const args = ['-r', join(__dirname, '../support/typescript.cjs'), join(__dirname, 'loop.ts'), m.root, m.state, listed];
    const host = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(host.stdout, 'data');
    // Not a wait for anything: the moment of the kill. Until then nothing that others could read may hold a secret.
    const seen: string[] = [];
    for (const until = Date.now() + roll.below(150); Date.now() < until; ) seen.push(...openTexts().filter(holdsSecret));
    expect(seen).toEqual([]);
    expect(host.exitCode).toBeNull();
    host.kill('SIGKILL');
    await once(host, 'exit');
    for (const [path, mode] of Object.entries(holders(FIRST, SECOND))) {
      expect(path).toMatch(/^root\/etc\/(board\.env|\.tally-[0-9a-f]+\.new)$/);
      expect(['600', '400']).toContain(mode);
    }
    const now = readable(join(m.root, 'etc/board.env'));
    expect(['theirs', 'no secret', ...whole]).toContain(now);
  }
  expect(failuresOf(await m.apply([holding(one)]))).toEqual([]);
  expect(holders(FIRST, SECOND)).toEqual({ 'root/etc/board.env': '600' });
  await m.apply([]);
  expect(holders(FIRST, SECOND)).toEqual({});
  expect(m.tree()['etc/board.env']).toBe('644 theirs');
}, 110_000);

const holdsSecret = (text: string): boolean => [FIRST, SECOND].some((secret) => text.includes(secret.slice(0, 12)));

/** What lies beside the file and under its name, where others may read it. */
function openTexts(): string[] {
  const folder = join(m.root, 'etc');
  return (existsSync(folder) ? readdirSync(folder) : []).flatMap((name) => {
    try {
      const fd = openSync(join(folder, name), 'r');
      try {
        return (fstatSync(fd).mode & 0o077) === 0 ? [] : [readFileSync(fd, 'latin1')];
      } finally {
        closeSync(fd);
      }
    } catch {
      return [];
    }
  });
}

function readable(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
