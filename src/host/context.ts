/** One installation of a host: its state directory, which one process has at a time, and what shapes are given of it. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { UsageError } from '../domain/errors';
import type { RegistryClient } from '../registry';
import type { Declaration } from '../schema/declaration';
import { openArtifacts } from './artifacts';
import { createEngine, type Engine } from './engine';
import { type Journal, openJournal, syncDirectory, writeWhole } from './journal';
import { openRoot, type Root, statOf } from './root';
import { openSecrets } from './secrets';
import { serviceRunner } from './services';
import type { HostContext } from './shape';

export interface Host {
  readonly state: string;
  readonly root: Root;
  readonly journal: Journal;
  readonly engine: Engine;
  /** The last one that was accepted. */
  declaration(): Declaration | null;
  /** On the disk when this returns. */
  accept(declaration: Declaration): void;
  release(): void;
}

export interface HostOptions {
  readonly root: string;
  readonly state: string;
  readonly settleMs: number;
  /** null: nothing can be fetched. Made when it is first needed. */
  readonly registry: (() => RegistryClient) | null;
}

/** Others may pass through to the trees that targets lead to; everything else in it is for this host alone by its own mode. */
const STATE_MODE = 0o711;

/** @throws UsageError when the root is not there, or another host has the state directory. */
export async function openHost({ root: rootPath, state: statePath, settleMs, registry }: HostOptions): Promise<Host> {
  if (statOf(rootPath) === null) throw new UsageError(`the root ${rootPath} is not there: make it, or name another with --root`);
  mkdirSync(statePath, { recursive: true, mode: STATE_MODE });
  const state = realpathSync(statePath);
  const lock = await lockState(state);
  const journal = openJournal(state);
  const root = openRoot(rootPath, join(state, 'trees'));
  const context: HostContext = {
    root,
    state,
    settleMs,
    artifacts: openArtifacts(state, registry),
    secrets: openSecrets(state, root),
    services: serviceRunner(root.path, state),
    hasMade: (path) => journal.made.has(path),
    makeDirectories(path) {
      const missing: string[] = [];
      for (let at = path; statOf(at) === null; at = dirname(at)) missing.unshift(at);
      if (missing.length === 0) return;
      journal.write(...missing.map((one) => ({ t: 'made', path: one }) as const));
      mkdirSync(path, { recursive: true, mode: 0o755 });
      for (const one of missing) syncDirectory(dirname(one));
    },
  };
  const file = join(state, 'declaration.json');
  let declaration = readDeclaration(file);

  return {
    state,
    root,
    journal,
    engine: createEngine(journal, context),
    declaration: () => declaration,
    accept(next) {
      writeWhole(file, JSON.stringify(next));
      declaration = next;
    },
    release() {
      journal.close();
      lock.close();
    },
  };
}

/** An abstract socket goes with its process, however that ends. */
async function lockState(state: string): Promise<Server> {
  const id = createHash('sha256').update(state).digest('hex').slice(0, 24);
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error) =>
      reject(new UsageError(`another host has the state directory ${state}: end it, or name another with --state`, { cause: error })),
    );
    server.listen({ path: `\0tally-host-${id}` }, () => {
      server.unref();
      resolve(server);
    });
  });
}

/** Checked when it was accepted, so it is not looked at again: a host of thousands of files starts in a moment. */
function readDeclaration(file: string): Declaration | null {
  return statOf(file) === null ? null : (JSON.parse(readFileSync(file, 'utf8')) as Declaration);
}
