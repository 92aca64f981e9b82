import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../../src/servers/places';
import type { Benchmark } from '../figure';

const GIVE_UP_MS = 600_000;
/** The demo says so of a module whose first build runs on the nodes it is for. */
const DELIVERED = /is in step on \d+ nodes/;

/** What a newcomer waits: clone, `npm start -- --once`, and the first module runs on its nodes. */
export const setupSeconds: Benchmark = {
  figures: ['setup-seconds'],
  run: async ({ print, say }) => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'tally-bench-setup-'));
    try {
      const start = Date.now();
      const clone = path.join(dir, 'tally');
      execFileSync('git', ['clone', '--quiet', packageRoot(), clone], { timeout: 60_000 });
      const delivered = await firstDelivery(clone, say);
      print({ name: 'setup-seconds', value: (delivered - start) / 1_000, unit: 's', reference: { name: 'aim', value: 120 } });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  },
};

/** When it was seen. The run then goes on to its end, so that nothing of it is left. */
async function firstDelivery(clone: string, say: (text: string) => void): Promise<number> {
  const child = spawn('npm', ['start', '--', '--once'], { cwd: clone, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const late = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), GIVE_UP_MS);
  let delivered: number | null = null;
  const last: string[] = [];
  const read = (input: NodeJS.ReadableStream): void => {
    createInterface({ input }).on('line', (line) => {
      if (line.trim() === '') return;
      say(line);
      last.push(line);
      if (last.length > 10) last.shift();
      if (delivered !== null || !DELIVERED.test(line)) return;
      delivered = Date.now();
      child.kill('SIGINT');
    });
  };
  read(child.stdout);
  read(child.stderr);
  try {
    await once(child, 'close');
  } finally {
    clearTimeout(late);
  }
  if (delivered === null) throw new Error(`no delivery was seen; the last lines were:\n${last.join('\n')}`);
  return delivered;
}
