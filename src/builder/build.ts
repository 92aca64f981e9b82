import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { EnvironmentError } from '../domain/errors';
import { sourceTree } from '../imports/tree';
import type { KeyPair } from '../link';
import type { RegistryClient } from '../registry';
import type { Manifest } from '../schema/manifest';
import type { BuildAnswer, BuildRequest, BuiltArtifact, Input } from '../schema/messages';
import { checkoutCommit } from '../source';
import type { Unsigned } from './answers';
import type { Stopped } from './command';
import { runCommand } from './command';
import type { BuilderLimits } from './config';
import type { BuilderHome, Work } from './home';
import { readManifest } from './inspect';
import { pushKeptLog } from './keptLog';
import type { BuildLog } from './log';
import { findOutputs, packOutputs, pushOutputs } from './outputs';
import type { Built } from './provenance';
import { attachProvenance } from './provenance';
import { reasonLine } from './reason';
import type { Sandbox } from './sandbox';
import type { Stopper } from './stopper';

/**
 * One attempt at one closure: checkout, fetch, run, test, pack, push. It always answers: what is the module's own is `failed`,
 * and whatever else goes wrong, an exception of our own included, is the surroundings'.
 */

export interface BuildTools {
  builder: string;
  home: BuilderHome;
  sandbox: Sandbox;
  registry: RegistryClient;
  key: KeyPair;
  limits: BuilderLimits;
}

export interface Attempt {
  request: BuildRequest;
  log: BuildLog;
  stopper: Stopper;
  onStep(step: string): void;
}

type Found = Unsigned<BuildAnswer>;
/** Before log and times are known. */
type Outcome = Found extends infer F ? (F extends unknown ? Omit<F, 'log' | 'steps'> : never) : never;

export async function performBuild(tools: BuildTools, attempt: Attempt): Promise<Found> {
  const { request, log, stopper } = attempt;
  const clock = createClock(attempt);
  log.say(`build ${request.commit.slice(0, 7)} of ${request.module} for ${request.platform} on ${tools.builder}`);
  const outcome = await settle(tools, attempt, clock);
  log.say('reason' in outcome ? `${outcome.outcome}: ${outcome.reason}` : outcome.outcome);
  const text = await log.finish();
  const isHurried = stopper.why()?.kind === 'shutdown';
  const kept = isHurried ? null : await pushKeptLog(tools.registry, request.module, request.request, text);
  return { ...outcome, log: kept, steps: clock.end() } as Found;
}

async function settle(tools: BuildTools, attempt: Attempt, clock: Clock): Promise<Outcome> {
  const { stopper } = attempt;
  let outcome: Outcome;
  try {
    outcome = await inWork(tools, attempt, clock);
  } catch (error) {
    outcome = { outcome: 'environment', step: clock.step(), reason: reasonLine(error instanceof Error ? error.message : String(error)) };
  }
  const why = stopper.why();
  // What ended before it was told to stop has its verdict.
  if (why === null || outcome.outcome !== 'environment') return outcome;
  return why.kind === 'cancelled' ? { outcome: 'cancelled', reason: reasonLine(why.reason) } : { ...outcome, reason: reasonLine(why.reason) };
}

async function inWork(tools: BuildTools, attempt: Attempt, clock: Clock): Promise<Outcome> {
  const free = await tools.home.freeBytes();
  checkDisk(free, tools.limits);
  const work = await tools.home.newWork();
  try {
    return await build(tools, attempt, clock, work);
  } finally {
    await work.remove();
  }
}

async function build(tools: BuildTools, attempt: Attempt, clock: Clock, work: Work): Promise<Outcome> {
  const { request, stopper } = attempt;
  const startedAt = new Date().toISOString();

  clock.begin('checkout');
  const { repository, ref, commit, module } = request;
  await checkoutCommit({ repository, ref, commit, dir: work.tree, timeoutMs: tools.limits.checkoutMs, signal: stopper.signal });
  const reading = await readManifest(work.tree, module);
  if (!reading.valid) {
    const [first] = reading.problems;
    return failed('checkout', `${first?.file}:${first?.line} ${first?.key} ${first?.message}`, []);
  }

  const { files } = await sourceTree(work.tree, stopper.signal);
  const inputs = takeInputs(request.inputs);
  const stopped = await runCommands(tools, attempt, clock, work, reading.manifest);
  if (stopped !== null) return stopped.kind === 'failed' ? failed(stopped.step, stopped.reason, inputs) : environment(stopped.step, stopped.reason);

  clock.begin('pack');
  // The commands may ask git for the commit; an artifact never holds the repository, which differs from checkout to checkout.
  await rm(join(work.tree, '.git'), { recursive: true, force: true });
  const outputs = await findOutputs(reading.manifest, work.tree);
  if (typeof outputs === 'string') return failed('pack', outputs, inputs);
  const packed = await packOutputs(outputs, { root: work.tree, tracked: files.map(({ path }) => path) }, work.directory);
  if (typeof packed === 'string') return failed('pack', packed, inputs);

  clock.begin('push');
  stopper.signal.throwIfAborted();
  const artifacts = await pushOutputs(tools.registry, packed, module, request.request);
  const finishedAt = new Date().toISOString();
  const provenance = await attachProvenance(tools.registry, tools.key, { request, builder: tools.builder, inputs, artifacts, startedAt, finishedAt });
  return { outcome: 'fit', artifacts: artifacts.map(toBuilt), inputs, provenance };
}

async function runCommands(
  tools: BuildTools,
  attempt: Attempt,
  clock: Clock,
  work: Work,
  manifest: Manifest,
): Promise<(Stopped & { step: string }) | null> {
  const home = await tools.home.homeOf(attempt.request.module);
  let usedMs = 0;
  for (const step of ['fetch', 'run', 'test'] as const) {
    const command = manifest.build[step];
    if (command === undefined) continue;
    clock.begin(step);
    const begun = performance.now();
    const stopped = await runCommand({ ...tools, ...attempt, builderHome: tools.home, step, command, manifest, usedMs, work, home });
    if (stopped !== null) return { step, ...stopped };
    if (step !== 'fetch') usedMs += performance.now() - begun;
  }
  return null;
}

/** Until modules build on one another there is nothing to lay out, and a request that names an input asks for more than this builder can. */
function takeInputs(inputs: readonly Input[]): Input[] {
  if (inputs.length === 0) return [];
  throw new EnvironmentError('this builder cannot lay out inputs of other modules yet: start a newer one');
}

function checkDisk(freeBytes: number, limits: BuilderLimits): void {
  if (freeBytes >= limits.minDiskBytes) return;
  const mib = (bytes: number): string => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  throw new EnvironmentError(`the builder has ${mib(freeBytes)} of disk left and begins a build with ${mib(limits.minDiskBytes)}: make room there`);
}

function failed(step: string, reason: string, inputs: Input[]): Outcome {
  return { outcome: 'failed', step, reason: reasonLine(reason), inputs };
}

function environment(step: string, reason: string): Outcome {
  return { outcome: 'environment', step, reason: reasonLine(reason) };
}

function toBuilt({ name, repository, kind, pushed }: Built): BuiltArtifact {
  return { name, kind, repository, digest: pushed.digest, blob: pushed.layer.digest, size: pushed.layer.size };
}

interface Clock {
  step(): string;
  begin(step: string): void;
  /** Milliseconds by step. */
  end(): Record<string, number>;
}

function createClock(attempt: Attempt): Clock {
  const steps: Record<string, number> = {};
  let current = 'begin';
  let since = performance.now();
  const close = (): void => {
    steps[current] = Math.round((steps[current] ?? 0) + performance.now() - since);
    since = performance.now();
  };
  return {
    step: () => current,
    begin(step) {
      close();
      current = step;
      attempt.log.beginStep(step);
      attempt.onStep(step);
    },
    end() {
      close();
      return steps;
    },
  };
}
