/** A machine for the host: a root and a state directory of its own, and the host as a process, started as an operator starts it. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { transformFileSync } from '@swc/core';
import { canonicalDigest } from '../../../src/link';
import type { Declaration, DeclaredResource } from '../../../src/schema/declaration';

export const MESH = 'home';
export const NODE = 'alpha';

export interface Ran {
  /** Null when a signal ended it. */
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Machine {
  readonly dir: string;
  readonly root: string;
  readonly state: string;
  /** The host's `--once` over these resources, unsigned, with the next sequence. */
  once(resources: readonly DeclaredResource[], more?: readonly string[]): Promise<Ran>;
  /** The host with these arguments after `--root` and `--state`. */
  host(...args: string[]): Promise<Ran>;
  start(...args: string[]): ChildProcess;
  stop(): Promise<Ran>;
  /** A file that `--declaration` takes. */
  declarationFile(resources: readonly DeclaredResource[], over?: Partial<Declaration>): string;
  put(path: string, content: string, mode?: number): void;
  text(path: string): string;
  /** By path under the root: mode and content of files, aim of links, mode of directories. */
  tree(): Record<string, string>;
  remove(): Promise<void>;
}

const ROOMS = ['domain', 'schema', 'link', 'registry', 'pack', 'processes', 'servers', 'host'];
const repository = join(__dirname, '..', '..', '..');

/** The host's program as it is built, so that a start costs what a start costs. */
export function builtHost(): { readonly entry: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'tally-host-built-'));
  const sources = [
    'workers/host.ts',
    'src/log.ts',
    'src/config.ts',
    ...ROOMS.flatMap((room) =>
      readdirSync(join(repository, 'src', room), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join('src', room, file)),
    ),
  ];
  for (const source of sources) {
    const { code } = transformFileSync(join(repository, source), {
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'commonjs' },
    });
    const target = join(dir, source.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, code);
  }
  writeFileSync(join(dir, 'package.json'), readFileSync(join(repository, 'package.json')));
  symlinkSync(join(repository, 'node_modules'), join(dir, 'node_modules'));
  return { entry: join(dir, 'workers', 'host.js'), remove: () => rmSync(dir, { recursive: true, force: true }) };
}

const RUN_MS = 60_000;

/** @param env more for the host: shortened times. */
export function machine(entry: string, env: Readonly<Record<string, string>> = {}): Machine {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'tally-machine-')));
  const root = join(dir, 'root');
  const state = join(dir, 'state');
  mkdirSync(root);
  const started = new Set<ChildProcess>();
  const environment = { PATH: process.env.PATH, HOME: dir, TALLY_TIMES_SERVICE_SETTLE: '300', ...env };
  let sequence = 0;

  const host = (args: readonly string[]): Promise<Ran> =>
    new Promise((resolve) => {
      execFile(process.execPath, [entry, ...args], { env: environment, timeout: RUN_MS }, (error, out, err) =>
        resolve({ status: statusOf(error?.code ?? 0), out, err }),
      );
    });
  const self: Machine = {
    dir,
    root,
    state,
    once: (resources, more = []) => self.host('--once', '--declaration', self.declarationFile(resources), ...more),
    host: (...args) => host(['--root', root, '--state', state, ...args]),
    start(...args) {
      const child = spawn(process.execPath, [entry, '--root', root, '--state', state, ...args], {
        env: environment,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      started.add(child);
      return child;
    },
    stop: () => host(['stop', '--state', state]),
    declarationFile(resources, over = {}) {
      sequence += 1;
      const file = join(dir, `declaration-${sequence}.json`);
      writeFileSync(file, JSON.stringify({ ...declarationOf(resources, sequence), ...over }));
      return file;
    },
    put(path, content, mode = 0o644) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), content, { mode });
    },
    text: (path) => readFileSync(join(root, path), 'utf8'),
    tree: () => treeOf(root),
    async remove() {
      for (const child of started) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      await self.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return self;
}

function statusOf(code: unknown): number | null {
  return typeof code === 'number' ? code : null;
}

export function declarationOf(resources: readonly DeclaredResource[], sequence: number): Declaration {
  const builds = Object.fromEntries(resources.map(({ module }) => [module, { build: `build-${module}`, commit: 'a'.repeat(40) }]));
  return { version: 1, mesh: MESH, node: NODE, sequence, digest: canonicalDigest(resources), builds, resources: [...resources] };
}

export function treeOf(dir: string, below = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(dir, below)).sort()) {
    const path = join(below, name);
    const stat = lstatSync(join(dir, path));
    const mode = (stat.mode & 0o7777).toString(8);
    if (stat.isDirectory()) {
      found[path] = `${mode} directory`;
      Object.assign(found, treeOf(dir, path));
    } else found[path] = stat.isSymbolicLink() ? `→ ${readlinkSync(join(dir, path))}` : `${mode} ${readFileSync(join(dir, path), 'utf8')}`;
  }
  return found;
}

interface Placed {
  readonly module?: string;
  readonly mode?: string;
}

export function file(path: string, content: string, { module = 'app', mode = '0644' }: Placed = {}): DeclaredResource {
  return { module, id: `file${path}`, shape: 'file', spec: { path, mode, content } };
}

export function directory(path: string, { module = 'app', mode = '0755' }: Placed = {}): DeclaredResource {
  return { module, id: `directory${path}`, shape: 'directory', spec: { path, mode } };
}

type ServiceSpec = Extract<DeclaredResource, { shape: 'service' }>['spec'];

export function service(name: string, run: string[], more: Partial<ServiceSpec> & { readonly module?: string } = {}): DeclaredResource {
  const { module = 'app', ...spec } = more;
  return { module, id: `service/${name}`, shape: 'service', spec: { name, run, env: {}, stopWithin: 1_000, ...spec } };
}

export function action(name: string, run: string[], unless: string[], { module = 'app' }: Placed = {}): DeclaredResource {
  return { module, id: `action/${name}`, shape: 'action', spec: { name, run, unless, timeout: 10_000 } };
}

/** Live processes whose command line holds the mark. */
export function processesWith(mark: string): number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) return [];
    try {
      const isLive = !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${entry}/status`, 'utf8'));
      return isLive && readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes(mark) ? [Number(entry)] : [];
    } catch {
      return [];
    }
  });
}
