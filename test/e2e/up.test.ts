/** `tally up` as a process: killed, started again, ended in order, each time with nothing running twice or left over. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { processesOf } from '../../src/processes';
import { eventually } from '../support/eventually';

const START_MS = 90_000;

let dataDir: string;
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'tally-up-test-'));
  chmodSync(dataDir, 0o755);
});
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

interface Up {
  readonly child: ChildProcess;
  output(): string;
}

function start(...more: string[]): Up {
  const child = spawn(process.execPath, [resolve('bin/tally.js'), 'up', '--data', dataDir, ...more], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return { child, output: () => output };
}

const isUp = (up: Up): Promise<true> => eventually(() => up.output().includes('Ctrl-C stops everything'), { timeoutMs: START_MS, everyMs: 100 });

async function ended({ child }: Up): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

test(
  'killed, it is started again with the same data; asked to stop, it leaves nothing running',
  async () => {
    const first = start();
    await isUp(first);
    const client = readFileSync(join(dataDir, 'home', 'client.json'), 'utf8');
    expect(statSync(join(dataDir, 'home', 'client.json')).mode & 0o777).toBe(0o600);
    first.child.kill('SIGKILL');
    await ended(first);
    expect(processesOf(dataDir).length).toBeGreaterThan(5);

    const second = start();
    await isUp(second);
    expect(second.output()).toContain('stopped builder, control of a run that was killed');
    expect(readFileSync(join(dataDir, 'home', 'client.json'), 'utf8')).toBe(client);

    const third = start();
    expect(await ended(third)).toBe(1);
    expect(third.output()).toContain('another Tally');

    second.child.kill('SIGINT');
    expect(await ended(second)).toBe(0);
    expect(second.output()).toContain('nothing is left running');
    expect(processesOf(dataDir)).toEqual([]);
  },
  3 * START_MS,
);

test(
  'asked to stop while it starts, it stops what has started',
  async () => {
    const up = start('--fresh');
    await eventually(() => up.output().includes('postgres'), { timeoutMs: START_MS });
    up.child.kill('SIGTERM');
    expect(await ended(up)).toBe(0);
    expect(processesOf(dataDir)).toEqual([]);
  },
  2 * START_MS,
);
