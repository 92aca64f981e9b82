/** The `tally` command as a person would type it, and the API that it speaks to. */
import { join } from 'node:path';
import { connectApi } from '../cli/client';
import { findPlace } from '../cli/place';
import type { ModuleAnswer, NodeAnswer, StatusAnswer } from '../schema/api';
import { packageRoot } from '../servers/places';
import { lastLine, run } from '../servers/run';
import type { Mesh } from './looks';
import { DemoFailure } from './stage';

const COMMAND_TIMEOUT_MS = 60_000;

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
  const api = connectApi(findPlace({ TALLY_HOME: home }, home));
  return {
    status: () => api.get<StatusAnswer>('status'),
    module: (name) => api.get<ModuleAnswer>(`modules/${name}`),
    node: (name) => api.get<NodeAnswer>(`nodes/${name}`),
  };
}
