/** The demo's git: a bare repository a module, as a team would host it, and a working clone to commit in. */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EnvironmentError } from '../domain/errors';
import { lastLine, run } from '../servers/run';
import type { Edit } from './examples';

const GIT_TIMEOUT_MS = 20_000;

/** Nothing of this machine's or user's git settings has a say, and nothing asks for a password. */
const GIT_ENV = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'Demo',
  GIT_AUTHOR_EMAIL: 'demo@tally.invalid',
  GIT_COMMITTER_NAME: 'Demo',
  GIT_COMMITTER_EMAIL: 'demo@tally.invalid',
};

export interface DemoRepository {
  readonly module: string;
  /** The bare repository: the module's source. */
  readonly address: string;
  /** Replaces `find` by `put` in each file, commits and pushes. @returns the commit. */
  change(message: string, edits: readonly Edit[]): Promise<string>;
  head(): Promise<string>;
}

/** Makes the bare repository of `example` under `folder` with the example's tree as its first commit; made before, it is used as it is. */
export async function demoRepository(folder: string, example: string, module: string): Promise<DemoRepository> {
  const address = join(folder, `${module}.git`);
  const work = join(folder, 'work', module);
  if (!existsSync(join(address, 'refs', 'heads', 'main'))) {
    mkdirSync(work, { recursive: true });
    await git(folder, 'init', '--quiet', '--bare', '--initial-branch=main', address);
    await git(work, 'init', '--quiet', '--initial-branch=main');
    cpSync(example, work, { recursive: true });
    await git(work, 'add', '--all');
    await git(work, 'commit', '--quiet', '--message', `${module}, the first version`);
    await git(work, 'push', '--quiet', address, 'main');
  }
  return {
    module,
    address,
    head: () => git(work, 'rev-parse', 'HEAD'),
    async change(message, edits) {
      for (const { file, find, put } of edits) {
        const path = join(work, file);
        const before = readFileSync(path, 'utf8');
        if (!before.includes(find)) throw new Error(`${module}: ${file} does not hold ${JSON.stringify(find)}`);
        writeFileSync(path, before.replace(find, put));
      }
      await git(work, 'commit', '--quiet', '--all', '--message', message);
      await git(work, 'push', '--quiet', address, 'main');
      return git(work, 'rev-parse', 'HEAD');
    },
  };
}

async function git(folder: string, ...args: string[]): Promise<string> {
  const { ok, stdout, stderr } = await run('git', ['-C', folder, ...args], { timeoutMs: GIT_TIMEOUT_MS, env: { ...process.env, ...GIT_ENV } });
  if (!ok) throw new EnvironmentError(`git ${args[0] ?? ''} in ${folder}: ${lastLine(stderr)}`);
  return stdout.trim();
}
