import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { supervise } from '../../src/processes';
import { eventually } from '../support/eventually';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tally-processes-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

function spec(script: string, name = 'worker') {
  return { name, home, command: '/bin/sh', args: ['-c', script], env: { PATH: process.env.PATH ?? '' }, stopSignal: 'SIGTERM' as const };
}

test('a process that ends unasked is started again, and that is said', async () => {
  const said: string[] = [];
  const worker = supervise(spec('exec sleep 300'), (line) => said.push(line));
  await worker.start();
  const first = worker.pid();
  worker.crash();
  const second = await eventually(() => (worker.pid() === first ? null : worker.pid()));
  expect(second).not.toBe(first);
  expect(said).toEqual(['worker ended by SIGKILL; started again in 0.5 s']);
  await worker.stop();
  expect(isAlive(second)).toBe(false);
  expect(worker.pid()).toBeNull();
});

test('a stopped process is not started again, and nothing that it started is left', async () => {
  const worker = supervise(spec('sleep 300 & echo $! > child; wait'), () => undefined);
  await worker.start();
  const child = await eventually(() => Number(readFileSync(join(home, 'child'), 'utf8')) || null);
  expect(isAlive(child)).toBe(true);
  await worker.stop();
  expect(isAlive(child)).toBe(false);
});

test('what an earlier run left is stopped before a new one starts', async () => {
  const killed = supervise(spec('exec sleep 300'), () => undefined);
  await killed.start();
  const left = killed.pid() ?? 0;
  // As a new run after a SIGKILL of the first sees it: another supervisor of the same place.
  const next = supervise(spec('exec sleep 301'), () => undefined);
  await eventually(() => readFileSync(join(home, 'worker.pid'), 'utf8').startsWith(String(left)));
  await next.start();
  expect(isAlive(left)).toBe(false);
  expect(next.pid()).not.toBe(left);
  await killed.stop();
  await next.stop();
});
