/** What a stranger does first: `npm start -- --once`, with servers and data of its own, from the built program. */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { processesOf } from '../../src/processes';

const SCENES = [
  'Six modules, three machines',
  'The first delivery of all',
  'A new commit to meshboard',
  'A commit whose test fails',
  'The commit that mends it',
  'A node that is off, and wakes',
  'The builder is killed in the middle of a build',
  'One commit to what they all build on',
  'A commit to core that changes none of its artifacts',
  'A comment in core, compiled into nothing',
];

/** Far above what it takes, for machines that fetch servers first. */
const WITHIN_MS = 700_000;

let temporary: string;
beforeAll(() => {
  temporary = mkdtempSync(join(tmpdir(), 'tally-demo-test-'));
  // PostgreSQL of root runs as another user, who must come through.
  chmodSync(temporary, 0o755);
});
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

function once(): Promise<{ status: number | null; output: string }> {
  return new Promise((done, failed) => {
    const env = { ...process.env, TMPDIR: temporary };
    const child = spawn(process.execPath, [resolve('bin/tally.js'), 'up', '--demo', '--once'], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: WITHIN_MS,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.once('error', failed);
    child.once('close', (status) => done({ status, output }));
  });
}

test(
  'the demo plays to its end, shows every scene in plain lines, and leaves nothing behind',
  async () => {
    const { status, output } = await once();
    if (status !== 0) throw new Error(`it ended with status ${status}:\n${output}`);
    for (const scene of SCENES) expect(output).toContain(scene);
    expect(output).not.toContain('\u001b[');
    expect(output).not.toContain('✗');
    expect(processesOf(temporary)).toEqual([]);
    expect(readdirSync(temporary).filter((entry) => entry.startsWith('tally-once-'))).toEqual([]);
  },
  WITHIN_MS + 10_000,
);
