/** The `tally` command as a person would type it, and the API that it speaks to. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { moduleAnswer, nodeAnswer, statusAnswer } from '../schema/api';
import { packageRoot } from '../servers/places';
import { lastLine, run } from '../servers/run';
import type { Mesh } from './looks';
import { DemoFailure } from './stage';

const CALL_TIMEOUT_MS = 10_000;
const COMMAND_TIMEOUT_MS = 30_000;

const client = z.object({ url: z.string(), token: z.string() });

/** Runs `tally` with these words. @throws DemoFailure with what it said when it does not end with 0. */
export type Tally = (...words: string[]) => Promise<void>;

export function tallyCommand(home: string): Tally {
  return async (...words) => {
    const env = { ...process.env, TALLY_HOME: home, NO_COLOR: '1' };
    const { ok, stdout, stderr } = await run(process.execPath, [join(packageRoot(), 'bin', 'tally.js'), ...words], {
      timeoutMs: COMMAND_TIMEOUT_MS,
      env,
    });
    if (!ok) throw new DemoFailure(`expected: tally ${words.join(' ')} ends with 0\nseen: ${lastLine(stderr) || lastLine(stdout)}`);
  };
}

export function meshOf(home: string): Mesh {
  const { url, token } = client.parse(JSON.parse(readFileSync(join(home, 'client.json'), 'utf8')));
  async function get<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    const response = await fetch(`${url}/api/v1/${path}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    const body: unknown = await response.json();
    if (!response.ok) throw new Error(`GET /api/v1/${path} answered ${response.status}: ${JSON.stringify(body)}`);
    return schema.parse(body);
  }
  return {
    status: () => get('status', statusAnswer),
    module: (name) => get(`modules/${name}`, moduleAnswer),
    node: (name) => get(`nodes/${name}`, nodeAnswer),
  };
}
