import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ending, IsolatedCommand } from '../../src/builder/sandbox';
import { createSandbox } from '../../src/builder/sandbox';
import { eventually } from '../support/eventually';

let base: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'tally-sandbox-'));
  for (const directory of ['builder/work/tree', 'builder/work/tmp', 'builder/home']) await mkdir(join(base, directory), { recursive: true });
  await writeFile(join(base, 'builder/signing.key'), 'a secret of the builder');
});

afterEach(async () => {
  await rm(base, { recursive: true, force: true });
});

async function run(command: string, more: Partial<IsolatedCommand> = {}): Promise<{ ending: Ending & { memoryBy: string | null }; output: string }> {
  let output = '';
  const ending = await createSandbox('tally-sandbox-test').run({
    command,
    tree: join(base, 'builder/work/tree'),
    home: join(base, 'builder/home'),
    tmp: join(base, 'builder/work/tmp'),
    hide: join(base, 'builder'),
    env: { PATH: process.env.PATH ?? '' },
    network: 'none',
    timeoutMs: 30_000,
    signal: new AbortController().signal,
    onOutput: (chunk) => {
      output += chunk.toString();
    },
    ...more,
  });
  return { ending, output };
}

/** Processes of this machine whose command line holds the mark. */
async function processes(mark: string): Promise<Array<{ pid: string; line: string }>> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const lines = await Promise.all(pids.map(async (pid) => ({ pid, line: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') })));
  return lines.filter(({ line }) => line.includes(mark));
}

async function alive(mark: string): Promise<number> {
  return (await processes(mark)).length;
}

describe('an isolated command', () => {
  test('writes into its tree and home, and ends with its own status', async () => {
    const { ending, output } = await run('pwd; echo made > made; echo kept > /tmp/home/kept; echo gone > /tmp/gone; exit 3');
    expect(ending).toEqual({ kind: 'exit', status: 3, memoryBy: null });
    expect(output).toBe('/tmp/build\n');
    expect(await readFile(join(base, 'builder/work/tree/made'), 'utf8')).toBe('made\n');
    expect(await readFile(join(base, 'builder/home/kept'), 'utf8')).toBe('kept\n');
  });

  test('stops at the first of its lines that fails', async () => {
    expect(await run('echo one\nfalse\necho two')).toMatchObject({ ending: { kind: 'exit', status: 1 }, output: 'one\n' });
  });

  test('alone has what its module set: nothing that runs outside of it is touched', async () => {
    const mark = `tally-env-${process.pid}-${Date.now()}`;
    const controller = new AbortController();
    const env = { PATH: process.env.PATH ?? '', LD_PRELOAD: '/nowhere/evil.so', GREETING: 'a "b" $c' };
    const running = run(`echo "$GREETING"; sleep 600; : ${mark}`, { env, signal: controller.signal });
    const outside = await eventually(async () => {
      const found = (await processes(mark)).filter(({ line }) => line.startsWith('unshare'));
      expect(found).toHaveLength(1);
      return found;
    });
    for (const { pid } of outside) expect(await readFile(`/proc/${pid}/environ`, 'utf8')).not.toContain('evil');
    await eventually(async () => expect(await processes(mark)).toHaveLength(3));
    controller.abort();
    expect((await running).output).toContain('a "b" $c\n');
  });

  test('that is killed by a signal says which', async () => {
    expect((await run("sh -c 'kill -SEGV $$'")).ending).toMatchObject({ kind: 'exit', status: 139 });
  });

  test('sees no process, no environment and no file of the builder', async () => {
    const hidden = { PATH: process.env.PATH ?? '' };
    const { output } = await run(
      `ls /proc | grep -c '^[0-9]*$'; cat /proc/[0-9]*/environ | tr '\\0' '\\n' | cut -d= -f1 | sort -u; cat ${base}/builder/signing.key 2>&1; ls ${base} 2>&1`,
      { env: hidden },
    );
    expect(output).not.toContain('a secret');
    expect(Number(output.split('\n')[0])).toBeLessThan(8);
    expect(output).not.toContain('JEST_WORKER_ID');
  });

  test('cannot mount away what hides the builder', async () => {
    expect((await run('umount /tmp')).ending).toMatchObject({ kind: 'exit', status: 32 });
  });

  test('without the network has a loopback of its own and nothing else', async () => {
    const server = createServer((socket) => socket.end('the outside'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const script = (way: string): string => `node -e "
        const s = require('net').connect(${port}, '127.0.0.1'); s.on('data', (d) => { console.log('${way}', String(d)); process.exit(0) }); s.on('error', (e) => { console.log('${way}', e.code); process.exit(9) })"`;
      expect(await run(script('alone'))).toMatchObject({ ending: { status: 9 }, output: 'alone ECONNREFUSED\n' });
      expect(await run(script('host'), { network: 'host' })).toMatchObject({ ending: { status: 0 }, output: 'host the outside\n' });
      const own = `node -e "const n = require('net'); const s = n.createServer((c) => c.end('mine')).listen(0, '127.0.0.1', () => n.connect(s.address().port, '127.0.0.1').on('data', (d) => { console.log(String(d)); process.exit() }))"`;
      expect((await run(own)).output).toBe('mine\n');
    } finally {
      server.close();
    }
  });

  test('beyond its time ends with all its children, those of setsid and nohup too', async () => {
    const mark = `tally-orphan-${process.pid}-${Date.now()}`;
    const command = `for i in 1 2 3; do setsid sh -c 'exec node -e "setInterval(() => {}, 1e6)" ${mark}' </dev/null >/dev/null 2>&1 & done; (nohup sh -c 'sleep 600; : ${mark}' &) ; echo started; sleep 600`;
    let seen = 0;
    const running = run(command, { timeoutMs: 2_500 });
    await eventually(
      async () => {
        seen = await alive(mark);
        expect(seen).toBeGreaterThan(4);
        return true;
      },
      { timeoutMs: 2_400 },
    );
    expect((await running).ending.kind).toBe('timeout');
    expect(await alive(mark)).toBe(0);
  });

  test('that is no longer wanted ends at once', async () => {
    const controller = new AbortController();
    const { ending } = await run('echo up; sleep 600', { signal: controller.signal, onOutput: () => controller.abort() });
    expect(ending.kind).toBe('aborted');
    expect((await run('sleep 600', { signal: AbortSignal.abort() })).ending.kind).toBe('aborted');
  });

  test('leaves no background process when it ends', async () => {
    const mark = `tally-background-${process.pid}-${Date.now()}`;
    expect((await run(`setsid sleep 600.${Date.now()} & : ${mark}; echo done`)).ending).toMatchObject({ kind: 'exit', status: 0 });
    expect(await alive(mark)).toBe(0);
  });

  test('beyond its memory is stopped, by a control group or by measuring', async () => {
    const eat = `node -e "const a = []; setInterval(() => a.push(Buffer.alloc(16 << 20, 1)), 5)"`;
    const { ending } = await run(eat, { memoryBytes: 200 << 20 });
    expect(ending.kind).toBe('memory');
    expect((await run('node -e 0', { memoryBytes: 200 << 20 })).ending).toMatchObject({ kind: 'exit', status: 0 });
  });

  test('is stopped with the reason that watching it gave', async () => {
    expect((await run('sleep 600', { watch: async () => 'the disk is full' })).ending).toMatchObject({ kind: 'watch', reason: 'the disk is full' });
  });
});
