/** A module that builds in a moment and whose running service says which version it is, for runs that deliver often. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface QuickModule {
  readonly name: string;
  readonly repository: string;
  /** Commits and pushes a next version. @returns the commit. */
  commit(kind: 'good' | 'broken'): string;
  head(): string;
  readonly commits: ReadonlyArray<{ readonly commit: string; readonly version: string; readonly isBroken: boolean }>;
  versionAt(commit: string): string | null;
}

/** @param weather an address: while it does not answer well, the fetch of every build fails, which is environmental. */
export function quickModule(folder: string, name: string, weather: string): QuickModule {
  const repository = join(folder, `${name}.git`);
  const work = join(folder, 'work', name);
  mkdirSync(work, { recursive: true });
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', work, '-c', 'user.name=Chaos', '-c', 'user.email=chaos@tally.invalid', ...args], {
      encoding: 'utf8',
      timeout: 20_000,
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
    }).trim();
  git('init', '--quiet', '--bare', '--initial-branch=main', repository);
  git('init', '--quiet', '--initial-branch=main');
  writeFileSync(join(work, 'module.yaml'), manifestOf(name, weather));
  const commits: Array<{ commit: string; version: string; isBroken: boolean }> = [];
  return {
    name,
    repository,
    commits,
    head: () => git('ls-remote', repository, 'refs/heads/main').split('\t')[0] ?? '',
    versionAt: (commit) => commits.find((one) => one.commit === commit)?.version ?? null,
    commit(kind) {
      const version = `${name}-${commits.length + 1}`;
      writeFileSync(join(work, 'version'), version);
      writeFileSync(join(work, 'quality'), kind);
      git('add', '--all');
      git('commit', '--quiet', '--message', `${version}, ${kind}`);
      git('push', '--quiet', repository, 'main');
      const commit = git('rev-parse', 'HEAD');
      commits.push({ commit, version, isBroken: kind === 'broken' });
      return commit;
    },
  };
}

function manifestOf(name: string, weather: string): string {
  return `module: ${name}
artifacts:
  pages: { archive: out/ }
  version: { file: version }
build:
  fetch: python3 -c "import urllib.request as r; r.urlopen('${weather}', timeout=5)"
  run: mkdir -p out && cp version out/version
  test: grep -q good quality
resources:
  - archive: { path: /opt/${name}, from: pages }
  - file: { path: /etc/${name}/version, from: version }
  - file: { path: /etc/${name}/node, content: "\${node.name}" }
  - service:
      name: ${name}
      run: [python3, -m, http.server, --bind, 127.0.0.1, --directory, "\${root}/opt/${name}", "\${facts.${name}.port}"]
      ready: { http: "http://127.0.0.1:\${facts.${name}.port}/version", within: 15s }
`;
}
