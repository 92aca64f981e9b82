/** A machine in a folder: a root, a host's state directory, and declarations to hold there. */
import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stopServices } from '../../src/host';
import { type Host, openHost } from '../../src/host/context';
import type { Pass } from '../../src/host/engine';
import { canonicalDigest } from '../../src/link';
import { packDirectory } from '../../src/pack';
import type { ArtifactRef, Declaration, DeclaredResource } from '../../src/schema/declaration';

export interface Machine {
  readonly folder: string;
  readonly root: string;
  readonly state: string;
  /** Opened once; `restart` lets it go, as a new process would find it. */
  host(): Promise<Host>;
  restart(): void;
  apply(resources: readonly DeclaredResource[], signal?: AbortSignal): Promise<Pass>;
  plant(path: string, content: string, mode?: number): void;
  read(path: string): string;
  /** Everything below the root: links with their targets, files with modes and contents, directories with modes. */
  tree(): Record<string, string>;
  /** Packs files and lays the blob where a fetched one would lie. */
  archive(files: Readonly<Record<string, string>>): Promise<ArtifactRef>;
  /** A blob of any content. */
  blob(content: Buffer): ArtifactRef;
  remove(): Promise<void>;
}

const SETTLE_MS = 300;

export function machine(): Machine {
  const folder = mkdtempSync(join(tmpdir(), 'tally-host-test-'));
  const root = join(folder, 'root');
  const state = join(folder, 'state');
  mkdirSync(root);
  let open: Promise<Host> | null = null;
  let isOpen: Host | null = null;
  let sequence = 0;
  let packs = 0;

  async function host(): Promise<Host> {
    open ??= openHost({ root, state, settleMs: SETTLE_MS, registry: null });
    isOpen = await open;
    return isOpen;
  }

  function restart(): void {
    isOpen?.release();
    isOpen = null;
    open = null;
  }

  const blob = (content: Buffer): ArtifactRef => {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
    mkdirSync(join(state, 'blobs'), { recursive: true, mode: 0o700 });
    writeFileSync(join(state, 'blobs', digest.replace(':', '-')), content);
    return { repository: 'tally/m', digest, blob: digest, size: content.length };
  };

  return {
    folder,
    root,
    state,
    host,
    restart,
    async apply(resources, signal = new AbortController().signal) {
      sequence += 1;
      const { engine, accept } = await host();
      const declared = declarationOf(resources, sequence);
      accept(declared);
      return await engine.apply(declared, signal);
    },
    plant(path, content, mode = 0o644) {
      const file = join(root, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      chmodSync(file, mode);
    },
    read: (path) => readFileSync(join(root, path), 'utf8'),
    tree: () => list(root),
    async archive(files) {
      packs += 1;
      const source = join(folder, `pack-${packs}`);
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(source, name)), { recursive: true });
        writeFileSync(join(source, name), content);
      }
      await packDirectory(source, `${source}.tgz`);
      return blob(readFileSync(`${source}.tgz`));
    },
    blob,
    async remove() {
      restart();
      await stopServices(state);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function list(root: string, below = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(root, below)).sort()) {
    const inner = join(below, name);
    const stat = lstatSync(join(root, inner));
    const mode = (stat.mode & 0o7777).toString(8);
    if (stat.isSymbolicLink()) found[inner] = `→ ${readlinkSync(join(root, inner))}`;
    else if (stat.isDirectory()) Object.assign(found, { [inner]: mode }, list(root, inner));
    else found[inner] = `${mode} ${readFileSync(join(root, inner), 'utf8')}`;
  }
  return found;
}

export function declarationOf(resources: readonly DeclaredResource[], sequence: number, over: Partial<Declaration> = {}): Declaration {
  const builds = Object.fromEntries(resources.map(({ module }) => [module, { build: `${module}-1`, commit: 'a'.repeat(40) }]));
  return { version: 1, mesh: 'home', node: 'alpha', sequence, digest: canonicalDigest(resources), builds, resources: [...resources], ...over };
}

type Of<S extends DeclaredResource['shape']> = Extract<DeclaredResource, { shape: S }>;

export function file(path: string, content: string | ArtifactRef, { module = 'm', mode = '0644' } = {}): Of<'file'> {
  const what = typeof content === 'string' ? { content } : { artifact: content };
  return { module, id: `file${path}`, shape: 'file', spec: { path, mode, ...what } };
}

export function directory(path: string, { module = 'm', mode = '0755' } = {}): Of<'directory'> {
  return { module, id: `directory${path}`, shape: 'directory', spec: { path, mode } };
}

export function archive(path: string, artifact: ArtifactRef, { module = 'm' } = {}): Of<'archive'> {
  return { module, id: `archive${path}`, shape: 'archive', spec: { path, artifact } };
}

export function service(name: string, run: string[], over: Partial<Of<'service'>['spec']> = {}, module = 'm'): Of<'service'> {
  return { module, id: `service/${name}`, shape: 'service', spec: { name, run, env: {}, stopWithin: 2_000, ...over } };
}

export function action(name: string, run: string[], unless: string[], { module = 'm', timeout = 10_000 } = {}): Of<'action'> {
  return { module, id: `action/${name}`, shape: 'action', spec: { name, run, unless, timeout } };
}

/** Live processes whose command line has all of these words. */
export function processesWith(...words: string[]): number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const line = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
      return words.every((word) => line.includes(word)) ? [Number(entry)] : [];
    } catch {
      return [];
    }
  });
}
