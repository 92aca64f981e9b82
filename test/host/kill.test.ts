import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { dice } from '../e2e/random';
import { machine, processesWith, service } from './machine';
import { type Choice, contentOf, expectedTree, plantForeign, resourcesOf, seenTree, TARGETS } from './model';

/** KILL_SEED repeats a run. */
const seed = Number(process.env.KILL_SEED ?? Date.now() % 1_000_000);
const KILLS = 25;

test(`killed at any moment, a host loses nothing and leaves nothing half done (seed ${seed})`, async () => {
  const m = machine();
  const roll = dice(seed);
  try {
    plantForeign(m);
    const foreign = seenTree(m);
    const packs = [await m.archive({ run: 'v0', 'lib/x': 'x' }), await m.archive({ run: 'v1' })];
    const lists = Array.from({ length: 12 }, () => {
      const choices: Choice[] = TARGETS.filter(() => roll.chance(0.6)).map((target) => ({ target, version: roll.below(2), module: 'm' }));
      const web = service('web', ['sh', '-c', 'sleep 271828; :', m.folder, String(roll.below(3))], { stopWithin: 200 }, 'w');
      return [...resourcesOf(choices, packs), ...(roll.chance(0.7) ? [web] : [])];
    });
    const file = join(m.folder, 'lists.json');
    writeFileSync(file, JSON.stringify(lists));
    for (let kill = 0; kill < KILLS; kill++) {
      const args = ['-r', join(__dirname, '../support/typescript.cjs'), join(__dirname, 'loop.ts'), m.root, m.state, file];
      const host = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      await once(host.stdout, 'data');
      // Not a wait for anything: the moment of the kill.
      await pause(roll.below(300));
      expect(host.exitCode).toBeNull();
      host.kill('SIGKILL');
      await once(host, 'exit');
      expect(countOf(m.folder)).toBeLessThanOrEqual(1);
      for (const [path, what] of Object.entries(seenTree(m))) {
        if (foreign[path] === what || !/^\d{3} /.test(what) || path.includes('.tally-')) continue;
        expect([0, 1].map((version) => contentOf(`/${path}`, version))).toContain(what.slice(4));
      }
    }
    for (const resources of [lists[0] ?? [], lists[5] ?? []]) {
      const pass = await m.apply(resources);
      expect(pass.modules.flatMap(({ failures }) => failures)).toEqual([]);
      expect(seenTree(m)).toEqual(expectedTree(foreign, resources));
      expect(countOf(m.folder)).toBe(resources.some(({ shape }) => shape === 'service') ? 1 : 0);
    }
    await m.apply([]);
    expect(m.tree()).toEqual(foreign);
  } finally {
    await m.remove();
  }
}, 110_000);

/** Each copy begins a session. Supervisors do too, and have the words of their service among theirs. */
function countOf(folder: string): number {
  const supervisors = processesWith('/bin/sh');
  return processesWith('sh', '-c', 'sleep 271828; :', folder).filter((pid) => !supervisors.includes(pid) && isLeader(pid)).length;
}

function isLeader(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]) === pid;
  } catch {
    return false;
  }
}
