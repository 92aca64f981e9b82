import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { defaultTimes } from '../../src/domain/times';
import { openHost } from '../../src/host/context';
import { canonicalDigest } from '../../src/link';
import type { Declaration, DeclaredResource } from '../../src/schema/declaration';
import { packageRoot } from '../../src/servers/places';
import { run } from '../../src/servers/run';
import { type Benchmark, elapsedMs, median } from '../figure';

const FILES = 1_000;
const RUNS = 11;
const PASS_WITHIN_MS = 60_000;
const INSTALL_WITHIN_MS = 600_000;

/** A pass over a thousand files that are as declared: by the engine of a host that runs, and by a process of its own. */
export const hostNoop: Benchmark = {
  figures: ['host-noop-resident', 'host-noop-process'],
  run: async ({ print, peers, say }) => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'tally-bench-host-'));
    try {
      const root = path.join(dir, 'root');
      const state = path.join(dir, 'state');
      mkdirSync(root);
      print({ name: 'host-noop-resident', value: await resident(root, state), unit: 'ms', reference: { name: 'aim', value: 100 } });
      const command = [process.execPath, path.join(packageRoot(), 'bin', 'tally.js'), 'host', '--once', '--root', root, '--state', state];
      const value = await secondsOf(command);
      const measured = peers ? await measurePeers(dir, root, say) : [];
      if (measured.length === 0) print({ name: 'host-noop-process', value, unit: 's', reference: null });
      for (const reference of measured) print({ name: 'host-noop-process', value, unit: 's', reference });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  },
};

const fileAt = (n: number): { path: string; content: string } => ({
  path: `/etc/bench/${n % 10}/file-${n}.conf`,
  content: `setting = ${n}\n`.repeat(8),
});

function declarationOfFiles(): Declaration {
  const resources = Array.from({ length: FILES }, (_, n): DeclaredResource => {
    const file = fileAt(n);
    return { module: 'bench', id: `file${file.path}`, shape: 'file', spec: { ...file, mode: '0644' } };
  });
  const builds = { bench: { build: 'bench-1', commit: 'a'.repeat(40) } };
  return { version: 1, mesh: 'bench', node: 'bench', sequence: 1, digest: canonicalDigest(resources), builds, resources };
}

async function resident(root: string, state: string): Promise<number> {
  const host = await openHost({ root, state, settleMs: defaultTimes.serviceSettle, registry: null });
  try {
    const declaration = declarationOfFiles();
    host.accept(declaration);
    const pass = async (): Promise<number> => {
      const { modules, hasFailed } = await host.engine.apply(declaration, new AbortController().signal);
      if (hasFailed) throw new Error(`the pass failed: ${JSON.stringify(modules[0]?.failures[0])}`);
      return modules.reduce((sum, module) => sum + module.changes.length, 0);
    };
    if ((await pass()) !== FILES) throw new Error(`the first pass did not write ${FILES} files`);
    const runs: number[] = [];
    for (let n = 0; n < RUNS; n += 1) {
      runs.push(
        await elapsedMs(async () => {
          const changes = await pass();
          if (changes !== 0) throw new Error(`a pass over files that hold changed ${changes} of them`);
        }),
      );
    }
    return median(runs);
  } finally {
    host.release();
  }
}

async function secondsOf([command = '', ...args]: readonly string[]): Promise<number> {
  const runs: number[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    runs.push(
      await elapsedMs(async () => {
        const { ok, stdout, stderr } = await run(command, args, { timeoutMs: PASS_WITHIN_MS });
        if (!ok) throw new Error(`${command} ${args.join(' ')}: ${stderr || stdout}`);
      }),
    );
  }
  return median(runs) / 1_000;
}

/** The same files, held by others: each by a whole process, as cron would start it. */
async function measurePeers(dir: string, root: string, say: (text: string) => void): Promise<Array<{ name: string; value: number }>> {
  await installed('cf-agent', ['cfengine3'], say);
  await installed('puppet', ['puppet-agent', 'puppet'], say);
  const files = Array.from({ length: FILES }, (_, n) => fileAt(n)).map((file) => ({ ...file, path: path.join(root, file.path) }));

  const policy = path.join(dir, 'files.cf');
  const promises = files.map(
    (file) =>
      `  "${file.path}" create => "true", perms => m644, edit_defaults => whole, edit_line => exactly("${file.content.replaceAll('\n', '\\n')}");`,
  );
  writeFileSync(
    policy,
    `body common control { bundlesequence => { "files" }; }
body perms m644 { mode => "0644"; }
body edit_defaults whole { empty_file_before_editing => "true"; edit_backup => "false"; }
bundle edit_line exactly(text) { insert_lines: "$(text)" insert_type => "preserve_block"; }
bundle agent files {
files:
${promises.join('\n')}
}
`,
    { mode: 0o600 },
  );
  const manifest = path.join(dir, 'files.pp');
  writeFileSync(
    manifest,
    files.map((file) => `file { '${file.path}': ensure => file, mode => '0644', content => "${file.content.replaceAll('\n', '\\n')}" }\n`).join(''),
  );
  const cfAgent = await secondsOf(['cf-agent', '--no-lock', '--workdir', dir, '--file', policy]);
  const puppet = await secondsOf(['puppet', 'apply', '--confdir', path.join(dir, 'puppet'), '--vardir', path.join(dir, 'puppet-var'), manifest]);
  return [
    { name: 'cf-agent', value: cfAgent },
    { name: 'puppet apply', value: puppet },
  ];
}

/** From Debian, by the first of these packages that it has. */
async function installed(program: string, packages: readonly string[], say: (text: string) => void): Promise<void> {
  const isThere = async (): Promise<boolean> => (await run('sh', ['-c', `command -v ${program}`], { timeoutMs: 10_000 })).ok;
  if (await isThere()) return;
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  say(`${program} is installed`);
  await run('apt-get', ['update', '--quiet'], { timeoutMs: INSTALL_WITHIN_MS, env });
  for (const name of packages) {
    await run('apt-get', ['install', '--quiet', '--yes', '--no-install-recommends', name], { timeoutMs: INSTALL_WITHIN_MS, env });
    if (await isThere()) return;
  }
  throw new Error(`${program} could not be installed from ${packages.join(' or ')}: install it, or leave --peers out`);
}
