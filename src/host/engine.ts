/**
 * Makes a machine be as declared, resource by resource, and says what it found and did. It knows no shape: what a thing is,
 * how it is made and taken away, stands in `shapes`. Whatever it begins is in the journal first, so a kill at any moment
 * leaves only what the next pass finishes.
 */
import { createHash } from 'node:crypto';
import { readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { canonicalDigest } from '../link/canonical';
import type { Declaration, DeclaredResource, SealedSecret } from '../schema/declaration';
import type { ModuleReport } from '../schema/messages';
import type { Entry } from './entry';
import { Overtaken, ResourceFailed } from './failures';
import { type Journal, syncDirectory } from './journal';
import { codeOf } from './root';
import type { HostContext, Reading, Shape, Task } from './shape';
import { shapeOf } from './shapes';

/** The digest of what was declared is for whoever reports it. */
export type ModulePass = Omit<ModuleReport, 'digest'>;

export interface Pass {
  readonly modules: readonly ModulePass[];
  /** Ids of what this host had made and has taken away. */
  readonly removed: readonly string[];
  /** What could not be taken away; tried again in the next pass. */
  readonly left: readonly Left[];
  readonly hasChanged: boolean;
  readonly hasFailed: boolean;
}

export interface Engine {
  /** @throws Overtaken when the signal says that a newer declaration waits; what was done until then is journalled. */
  apply(declaration: Declaration, signal: AbortSignal): Promise<Pass>;
}

interface Wanted {
  readonly resource: DeclaredResource;
  readonly order: number;
  readonly key: string;
  readonly print: string;
  readonly shape: Shape<unknown, unknown>;
}

interface Left {
  readonly module: string;
  readonly resource: string;
  readonly message: string;
}

interface Outcome {
  readonly failures: Array<{ resource: string; message: string }>;
  readonly changes: Array<{ resource: string; cause: 'intentional' | 'corrective' }>;
}

const MESSAGE_MOST = 2_000;

export function createEngine(journal: Journal, host: HostContext): Engine {
  const { entries } = journal;
  const known = new WeakMap<Declaration, readonly Wanted[]>();
  // What a killed pass left is tidied by the first.
  let isTidy = false;

  function wantedBy(declaration: Declaration): readonly Wanted[] {
    const found = known.get(declaration);
    if (found !== undefined) return found;
    const wanted = declaration.resources.map((resource, order): Wanted => {
      const shape = shapeOf(resource.shape);
      if (shape === null) throw new Error(`no shape is called ${resource.shape}`);
      const key = `${resource.shape}:${shape.target(resource.spec, resource.module)}`;
      return { resource, order, key, shape, print: printOf(host.root.path, resource.spec) };
    });
    known.set(declaration, wanted);
    return wanted;
  }

  /** Last made, first taken away; services end before what they stand on goes. */
  async function removeGone(
    wanted: readonly Wanted[],
    outcomes: ReadonlyMap<string, Outcome>,
    signal: AbortSignal,
  ): Promise<{ removed: string[]; left: Left[] }> {
    const keys = new Set(wanted.map(({ key }) => key));
    const gone = [...entries.values()].filter(({ key }) => !keys.has(key)).sort((a, b) => b.order - a.order);
    const removed: string[] = [];
    const left: Left[] = [];
    const waiting = new Set<string>();
    for (const entry of gone) {
      const { key, shape, id, module, memo } = entry;
      if (signal.aborted) throw new Overtaken();
      // What could not be undone may need what came before it, to be tried again.
      if (waiting.has(module) && shape !== 'action') continue;
      try {
        // Declared again before this has ended, it is looked at with care.
        if (!entry.isPending) journal.write({ t: 'entry', entry: { ...entry, held: null, isPending: true } });
        await shapeOf(shape)?.remove(memo, host, signal);
        journal.write({ t: 'gone', key });
        if (memo !== null) removed.push(id);
      } catch (error) {
        if (error instanceof Overtaken) throw error;
        if (shape === 'action') waiting.add(module);
        const failure = { resource: id, message: await said(`cannot be taken away: ${messageOf(error)}`) };
        left.push({ module, ...failure });
        outcomes.get(module)?.failures.push(failure);
      }
    }
    return { removed, left };
  }

  /** @returns whether the resource is so, and was before. */
  async function bring(one: Wanted, earlier: number, signal: AbortSignal): Promise<'held' | 'changed'> {
    const { key, order, print, shape, resource } = one;
    const { module, id } = resource;
    const about = { key, shape: resource.shape, module, id, order };
    const task = (): Task<unknown, unknown> => {
      const entry = entries.get(key) ?? null;
      return {
        spec: resource.spec,
        print,
        entry,
        earlier,
        signal,
        intend(memo) {
          const change = journal.change + 1;
          journal.write({ t: 'entry', entry: { ...about, change, held: entry?.held === print ? print : null, isPending: true, memo } });
          return change;
        },
      };
    };
    const before = await shape.read(task(), host);
    if (before.holds) {
      settle(before, about, print);
      return 'held';
    }
    await shape.apply(task(), host);
    host.root.forget();
    const after = await shape.read(task(), host);
    if (!after.holds) throw new Error(`it was applied and does not hold: ${after.why}`);
    settle(after, about, print);
    return 'changed';
  }

  function settle(
    reading: Extract<Reading<unknown>, { holds: true }>,
    about: Omit<Entry, 'change' | 'held' | 'isPending' | 'memo'>,
    print: string,
  ): void {
    const entry = entries.get(about.key);
    const isSame =
      entry !== undefined &&
      !entry.isPending &&
      entry.held === print &&
      entry.memo === reading.memo &&
      entry.order === about.order &&
      entry.module === about.module &&
      entry.id === about.id;
    if (!isSame) journal.note({ t: 'entry', entry: { ...about, change: entry?.change ?? 0, held: print, isPending: false, memo: reading.memo } });
  }

  /** Of files that are still there: what is undone before they go may say them. */
  function secretsLeft(): SealedSecret[] {
    return [...entries.values()].flatMap(({ memo }) => (hasSecrets(memo) ? memo.secrets : []));
  }

  /** Whatever a command or a service said last may hold what it was given. */
  async function said(text: string): Promise<string> {
    return oneLine(await host.secrets.scrub(text));
  }

  /** Directories of this host that hold nothing any more, and what was kept for entries that are gone. */
  function tidy(wanted: readonly Wanted[]): void {
    const declared = new Set(wanted.flatMap(({ resource }) => (resource.shape === 'directory' ? placesOf(resource.spec.path) : [])));
    for (const path of [...journal.made].sort((a, b) => b.length - a.length)) {
      if (!declared.has(path) && isRemoved(path)) journal.write({ t: 'unmade', path });
    }
    const memos = JSON.stringify([...entries.values()].map(({ memo }) => memo));
    for (const folder of ['kept', 'trees']) {
      for (const name of namesIn(join(host.state, folder))) {
        if (!memos.includes(`"${name.replace(/\.json$/, '')}"`)) rmSync(join(host.state, folder, name), { recursive: true, force: true });
      }
    }
  }

  /** None where a link has come to lead out, which its own resource says. */
  function placesOf(target: string): string[] {
    try {
      return [host.root.locate(target).path];
    } catch (error) {
      if (error instanceof ResourceFailed) return [];
      throw error;
    }
  }

  return {
    async apply(declaration, signal) {
      host.root.forget();
      host.secrets.know(declaration, secretsLeft());
      const wanted = wantedBy(declaration);
      const outcomes = new Map<string, Outcome>(wanted.map(({ resource }) => [resource.module, { failures: [], changes: [] }]));
      const { removed, left } = await removeGone(wanted, outcomes, signal);
      const latest = new Map<string, number>();
      const failed = new Set<string>();
      const failedParts = new Map<string, string[]>();
      for (const one of wanted) {
        const { module, id, part } = one.resource;
        const group = groupOf(one.resource);
        if (failed.has(module) || failed.has(group)) continue;
        if (signal.aborted) throw new Overtaken();
        const outcome = outcomes.get(module);
        const isCorrective = entries.get(one.key)?.held === one.print && outcome?.changes.every(({ cause }) => cause === 'corrective');
        try {
          const result = await bring(one, Math.max(latest.get(module) ?? 0, latest.get(group) ?? 0), signal);
          if (result === 'changed') outcome?.changes.push({ resource: id, cause: isCorrective ? 'corrective' : 'intentional' });
        } catch (error) {
          if (error instanceof Overtaken) throw error;
          failed.add(group);
          if (part !== undefined) failedParts.set(module, [...(failedParts.get(module) ?? []), part]);
          outcome?.failures.push({ resource: id, message: await said(messageOf(error)) });
        }
        latest.set(group, Math.max(latest.get(group) ?? 0, entries.get(one.key)?.change ?? 0));
      }
      const hasChanged = removed.length > 0 || [...outcomes.values()].some(({ changes }) => changes.length > 0);
      if (hasChanged || !isTidy) {
        tidy(wanted);
        await host.artifacts.prune();
        isTidy = true;
      }
      const modules = [...outcomes].map(
        ([module, { failures, changes }]): ModulePass => ({
          module,
          state: failures.length === 0 ? 'held' : 'failed',
          failures,
          changes,
          ...(failures.length === 0 || failed.has(module) ? {} : { failedParts: failedParts.get(module) ?? [] }),
        }),
      );
      return { modules, removed, left, hasChanged, hasFailed: left.length > 0 || failed.size > 0 };
    },
  };
}

/** What is made for one consumer fails and changes apart from what is made for another; what it all stands on is the module's own. */
function groupOf({ module, part }: DeclaredResource): string {
  return part === undefined ? module : `${module} ${part}`;
}

function hasSecrets(memo: unknown): memo is { readonly secrets: readonly SealedSecret[] } {
  return typeof memo === 'object' && memo !== null && 'secrets' in memo;
}

/** Per module: of its own resources, whole and in their order. */
export function moduleDigests({ resources }: Declaration): ReadonlyMap<string, string> {
  const slices = new Map<string, DeclaredResource[]>();
  for (const resource of resources) {
    const slice = slices.get(resource.module);
    if (slice === undefined) slices.set(resource.module, [resource]);
    else slice.push(resource);
  }
  return new Map([...slices].map(([module, slice]) => [module, canonicalDigest(slice)]));
}

/** The same however keys are ordered. It never leaves this machine, so it need not be the canonical one, which costs more. */
function printOf(root: string, spec: object): string {
  const text = JSON.stringify(spec, (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(root).update('\0').update(text).digest('base64url');
}

/** True when it is not there any more. */
function isRemoved(path: string): boolean {
  try {
    rmdirSync(path);
    syncDirectory(dirname(path));
    return true;
  } catch (error) {
    return codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR';
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ').slice(0, MESSAGE_MOST);
}
