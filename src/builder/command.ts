import type { Manifest } from '../schema/manifest';
import type { PackageName } from '../schema/messages';
import type { BuilderLimits } from './config';
import { commandEnvironment } from './environment';
import type { BuilderHome, Work } from './home';
import type { Laid } from './inputs';
import type { BuildLog } from './log';
import { createMissingNames } from './missing';
import { sizeWords, statusWords, timeWords } from './reason';
import type { Ending, Sandbox } from './sandbox';
import type { Stopper } from './stopper';

/** One of the three commands of a manifest, and what its end means. */

type Step = 'fetch' | 'run' | 'test';

export interface Stopped {
  kind: 'failed' | 'environment';
  reason: string;
  /** What it said that it did not find. */
  missing: PackageName[];
}

export interface CommandRun {
  step: Step;
  command: string;
  manifest: Manifest;
  laid: Laid;
  /** It is ours, and completes what was laid. */
  isOwn?: boolean;
  /** What run and test have used of their common time. */
  usedMs: number;
  work: Work;
  /** The module's. */
  home: string;
  builderHome: BuilderHome;
  sandbox: Sandbox;
  limits: BuilderLimits;
  log: BuildLog;
  stopper: Stopper;
}

/** EX_TEMPFAIL of sysexits.h. */
const TEMPORARY_FAILURE = 75;

/** `null`: it did what it should. Errors: EnvironmentError. */
export async function runCommand(run: CommandRun): Promise<Stopped | null> {
  const { step, manifest, log, limits } = run;
  const { network, env, memory } = manifest.build;
  const time = timeLimit(run);
  const memoryBytes = Math.min(memory ?? Number.POSITIVE_INFINITY, limits.memoryBytes ?? Number.POSITIVE_INFINITY);
  for (const line of run.command.trimEnd().split('\n')) log.say(`$ ${line}`);
  const hasNetwork = step === 'fetch' || network;
  const missing = createMissingNames(run.laid.recorded.flatMap(({ names }) => names));
  const ending = await run.sandbox.run({
    command: run.command,
    tree: run.work.tree,
    home: run.home,
    tmp: run.work.tmp,
    hide: run.builderHome.directory,
    mounts: run.laid.mounts,
    mayWriteMounts: run.isOwn === true,
    env: commandEnvironment(process.env, env, run.laid.env, { step, hasNetwork }),
    network: hasNetwork ? 'host' : 'none',
    timeoutMs: time.ms,
    ...(Number.isFinite(memoryBytes) ? { memoryBytes } : {}),
    watch: () => watchDisk(run),
    signal: run.stopper.signal,
    onOutput: (chunk) => {
      log.write(chunk);
      missing.write(chunk);
    },
  });
  if (ending.memoryBy === 'polling') log.say('memory was limited by measuring: this builder may not make control groups');
  const stopped = await judge(run, ending, { time, isOwnMemory: memoryBytes === memory, memoryBytes });
  return stopped === null ? null : { ...stopped, missing: missing.found() };
}

function timeLimit({ step, manifest, limits, usedMs }: CommandRun): { ms: number; isOwn: boolean; wholeMs: number } {
  if (step === 'fetch') return { ms: limits.fetchMs, isOwn: false, wholeMs: limits.fetchMs };
  const wholeMs = Math.min(manifest.build.timeout, limits.buildMs);
  return { ms: Math.max(1, wholeMs - usedMs), isOwn: manifest.build.timeout <= limits.buildMs, wholeMs };
}

interface Limits {
  time: { isOwn: boolean; wholeMs: number };
  isOwnMemory: boolean;
  memoryBytes: number;
}

async function judge(run: CommandRun, ending: Ending, { time, isOwnMemory, memoryBytes }: Limits): Promise<Omit<Stopped, 'missing'> | null> {
  const { step } = run;
  const own = step === 'fetch' ? 'environment' : 'failed';
  switch (ending.kind) {
    case 'exit': {
      if (ending.status === 0) return null;
      const full = await watchDisk(run);
      if (full !== null) return { kind: 'environment', reason: `${step}: ${full}` };
      const last = run.log.tellingLine();
      const reason = `${step}: ${statusWords(ending.status)}${last === '' ? '' : ` · ${last}`}`;
      return { kind: ending.status === TEMPORARY_FAILURE ? 'environment' : own, reason };
    }
    case 'timeout':
      return time.isOwn
        ? { kind: own, reason: `${step}: took longer than the ${timeWords(time.wholeMs)} of build.timeout` }
        : { kind: 'environment', reason: `${step}: took longer than the ${timeWords(time.wholeMs)} that this builder allows` };
    case 'memory':
      return isOwnMemory
        ? { kind: own, reason: `${step}: went beyond the ${sizeWords(memoryBytes)} of build.memory` }
        : { kind: 'environment', reason: `${step}: went beyond the ${sizeWords(memoryBytes)} that this builder allows` };
    case 'watch':
      return { kind: 'environment', reason: `${step}: ${ending.reason}` };
    case 'aborted':
      return { kind: 'environment', reason: `${step}: was stopped` };
  }
}

/** A full disk is the builder's trouble, even where the command that met it only says that it failed. */
async function watchDisk({ builderHome, limits }: CommandRun): Promise<string | null> {
  const free = await builderHome.freeBytes();
  return free < limits.minDiskBytes / 16 ? `the builder's disk is full, ${sizeWords(free)} are left: make room there` : null;
}
