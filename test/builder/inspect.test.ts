import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openHome } from '../../src/builder';
import { defaultLimits } from '../../src/builder/config';
import type { BuilderHome } from '../../src/builder/home';
import { performInspection } from '../../src/builder/inspect';
import { createStopper, type Stopper } from '../../src/builder/stopper';
import { inspectAnswer } from '../../src/schema/messages';
import { removeScratch, scratch } from './scratch';

let home: BuilderHome;

beforeAll(async () => {
  home = await openHome(join(scratch(), 'builder'));
});

afterAll(async () => {
  await home.release();
  removeScratch();
});

const manifest = `module: tried
artifacts:
  core: { go: go }
  wheel: { wheel: dist/*.whl }
  absent: { go: none }
`;

describe('an inspection', () => {
  test('says what the code of the commit exports and imports, and what it could not know', async () => {
    const touched = join(scratch(), 'touched');
    const found = await inspect({
      'module.yaml': manifest,
      'go/go.mod': 'module example.com/core\n',
      'go/core.go': 'package core\n\nimport "example.com/base/x"\n',
      'go/core_test.go': 'package core\n\nimport "example.com/proof"\n',
      'pyproject.toml': '[project]\nname = "tried"\n',
      'tried.py': `open(${JSON.stringify(touched)}, "w")\nimport base\n__import__(base.name)\n`,
      'broken.py': 'import x\n)\n',
      'setup.py': `open(${JSON.stringify(touched)}, "w")\n`,
    });
    expect(found).toMatchObject({
      outcome: 'valid',
      manifest: { module: 'tried' },
      exports: [
        { language: 'go', name: 'example.com/core', artifact: 'core', file: 'go/go.mod', line: 1 },
        { language: 'python', name: 'tried', artifact: 'wheel', file: 'pyproject.toml', line: 2 },
      ],
      imports: [
        { language: 'go', name: 'example.com/base/x', test: false, file: 'go/core.go', line: 3 },
        { language: 'go', name: 'example.com/proof', test: true, file: 'go/core_test.go', line: 3 },
        { language: 'python', name: 'base', test: false, file: 'tried.py', line: 2 },
      ],
      unknown: [
        { kind: 'unparsed', file: 'broken.py', line: 2 },
        { kind: 'computed', file: 'tried.py', line: 3 },
      ],
      notes: [
        'artifact absent: no go.mod names what is in none, so no other module can import it',
        'tried.py:3 a name that only a run could tell is imported',
      ],
    });
    expect(existsSync(touched)).toBe(false);
    expect(readdirSync(join(home.directory, 'work'))).toEqual([]);
  });

  test('that is stopped is environmental', async () => {
    const stopper = createStopper();
    stopper.stop({ kind: 'shutdown', reason: 'the builder ends' });
    expect(await inspect({ 'module.yaml': 'module: tried\n' }, stopper)).toEqual({ outcome: 'environment', reason: 'the builder ends' });
  });
});

async function inspect(files: Record<string, string>, stopper: Stopper = createStopper()): Promise<unknown> {
  const directory = join(scratch(), 'repository');
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', directory, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args], { encoding: 'utf8', timeout: 20_000 });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'one');
  const commit = git('rev-parse', 'HEAD').trim();
  const request = {
    v: 1,
    kind: 'inspect',
    request: 'request-1',
    attempt: 1,
    module: 'tried',
    repository: `file://${directory}`,
    ref: 'refs/heads/main',
    commit,
  } as const;
  const found = await performInspection(request, { home, limits: defaultLimits }, stopper);
  const at = new Date().toISOString();
  inspectAnswer.parse({ v: 1, kind: 'inspect', request: 'request-1', attempt: 1, builder: 'builder-1', startedAt: at, endedAt: at, ...found });
  return found;
}
