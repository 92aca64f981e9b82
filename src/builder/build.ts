import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
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
import type { Differing } from './differing';
import { differingOf } from './differing';
import type { BuilderHome, Work } from './home';
import type { Laid } from './inputs';
import { layInputs } from './inputs';
import { readManifest } from './inspect';
import { pushKeptLog } from './keptLog';
import type { BuildLog } from './log';
import type { Output } from './outputs';
import { findOutputs, packOutputs, pushOutputs } from './outputs';
import type { Built } from './provenance';
import { attachProvenance } from './provenance';
import { reasonLine } from './reason';
import type { Sandbox } from './sandbox';
import type { Stopper } from './stopper';

const CHECK_APART_MS = 2_100;
const INPUTS_TOLD = 100;

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
  const { home, registry, limits, key, builder } = tools;
  const { request, stopper } = attempt;
  checkDisk(await home.freeBytes(), limits);
  const startedAt = new Date();
  const work = await home.newWork();
  try {
    const made = await make(tools, attempt, clock, { work, home: await home.homeOf(request.module) });
    if ('outcome' in made) return made;
    const differing = request.check === true ? await checkAgain(tools, attempt, clock, made.packed, startedAt) : null;

    clock.begin('push');
    stopper.signal.throwIfAborted();
    const { inputs } = made;
    const artifacts = await pushOutputs(registry, made.packed, request.module, request.request);
    const times = { startedAt: startedAt.toISOString(), finishedAt: new Date().toISOString() };
    const provenance = await attachProvenance(registry, key, { request, builder, inputs, artifacts, ...times });
    return { outcome: 'fit', artifacts: artifacts.map(toBuilt), inputs, provenance, ...(differing === null ? {} : { check: { differing } }) };
  } finally {
    await work.remove();
  }
}

interface Made {
  packed: Output[];
  /** The closure as it was fetched. */
  inputs: Input[];
}

/** From the commit to what would be pushed. */
async function make(tools: BuildTools, attempt: Attempt, clock: Clock, place: { work: Work; home: string }): Promise<Made | Outcome> {
  const { request, stopper } = attempt;
  const { work } = place;
  clock.begin('checkout');
  const { repository, ref, commit, module } = request;
  await checkoutCommit({ repository, ref, commit, dir: work.tree, timeoutMs: tools.limits.checkoutMs, signal: stopper.signal });
  const reading = await readManifest(work.tree, module);
  if (!reading.valid) {
    const [first] = reading.problems;
    return failed('checkout', `${first?.file}:${first?.line} ${first?.key} ${first?.message}`, []);
  }

  const tree = await sourceTree(work.tree, stopper.signal);
  if (request.inputs.length > 0) clock.begin('inputs');
  const laid = await layInputs(request.inputs, tools.registry, work, tree, { signal: stopper.signal, cache: tools.home.programs });
  if (typeof laid === 'string') return failed('inputs', laid, []);
  const inputs = [...laid.recorded];
  for (const { module: from, artifact, digest } of inputs.slice(0, INPUTS_TOLD)) attempt.log.say(`input ${from}/${artifact} ${digest}`);
  if (inputs.length > INPUTS_TOLD) attempt.log.say(`and ${inputs.length - INPUTS_TOLD} inputs more`);
  const stopped = await runCommands(tools, attempt, clock, { ...place, manifest: reading.manifest, laid });
  if (stopped !== null) {
    const { kind, step, reason, missing } = stopped;
    const named = missing.length === 0 ? {} : { missing };
    return kind === 'failed' ? { ...failed(step, reason, inputs), ...named } : { ...environment(step, reason), ...named };
  }

  clock.begin('pack');
  // The commands may ask git for the commit; an artifact never holds the repository, which differs from checkout to checkout.
  await rm(join(work.tree, '.git'), { recursive: true, force: true });
  const outputs = await findOutputs(reading.manifest, work.tree);
  if (typeof outputs === 'string') return failed('pack', outputs, inputs);
  const packed = await packOutputs(outputs, { root: work.tree, tracked: tree.files.map(({ path }) => path) }, work.directory);
  return typeof packed === 'string' ? failed('pack', packed, inputs) : { packed, inputs };
}

/** Makes it once more, in another place and from an empty home, and says what came out otherwise. That the second fails is a difference too. */
async function checkAgain(tools: BuildTools, attempt: Attempt, clock: Clock, first: readonly Output[], startedAt: Date): Promise<Differing[]> {
  const { log, stopper } = attempt;
  log.say('check: the same again, in another place and from an empty home');
  // A time in seconds, or in the two seconds of a zip file, is another one then.
  await wait(Math.max(0, startedAt.getTime() + CHECK_APART_MS - Date.now()), undefined, { signal: stopper.signal });
  const work = await tools.home.newWork();
  try {
    const home = join(work.directory, 'home');
    await mkdir(home);
    const made = await make(tools, attempt, { ...clock, begin: (step) => clock.begin(`check ${step}`) }, { work, home });
    if (!('outcome' in made)) return await differingOf(first, made.packed);
    stopper.signal.throwIfAborted();
    if (made.outcome === 'environment') throw new EnvironmentError(made.reason);
    const reason = 'reason' in made ? made.reason : made.outcome;
    return first.map(({ name }) => ({ artifact: name, file: `not made the second time: ${reason}` }));
  } finally {
    await work.remove();
  }
}

async function runCommands(
  tools: BuildTools,
  attempt: Attempt,
  clock: Clock,
  made: { work: Work; home: string; manifest: Manifest; laid: Laid },
): Promise<(Stopped & { step: string }) | null> {
  const common = { ...tools, ...attempt, ...made, builderHome: tools.home };
  let usedMs = 0;
  for (const step of ['fetch', 'run', 'test'] as const) {
    const command = made.manifest.build[step];
    const own = step === 'fetch' ? made.laid.complete : null;
    if (command === undefined && own === null) continue;
    clock.begin(step);
    const begun = performance.now();
    const stopped =
      (own === null ? null : await runCommand({ ...common, step, command: own, usedMs, isOwn: true })) ??
      (command === undefined ? null : await runCommand({ ...common, step, command, usedMs }));
    if (stopped !== null) return { step, ...stopped };
    if (step !== 'fetch') usedMs += performance.now() - begun;
  }
  return null;
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
