/**
 * The host as the mesh sees it: takes declarations, keeps the machine as the newest one says, beats and reports. It is told
 * what to do; its own timers are for drift and for what failed.
 */

import { EnvironmentError } from '../domain/errors';
import type { Times } from '../domain/times';
import { type Delivery, type KeyPair, type Link, nodeExchange, nodeQueue, ROUTES, sign } from '../link';
import { DECLARATION_VERSION, type Declaration, FEATURES } from '../schema/declaration';
import { NODE_MESSAGE_TYPE, type NodeBeat } from '../schema/messages';
import { acceptEnvelope } from './accept';
import type { Host } from './context';
import { moduleDigests, type Pass } from './engine';
import { Overtaken } from './failures';
import type { HostLog } from './log';
import { startReporter } from './reporter';
import { shapeNames } from './shapes';

export interface AgentDeps {
  readonly host: Host;
  readonly link: Link;
  readonly mesh: string;
  readonly node: string;
  readonly meshPublicKey: string;
  readonly key: KeyPair;
  /** Public: what its secrets are sealed to. */
  readonly sealKey: string;
  /** Of Tally. */
  readonly version: string;
  readonly times: Pick<Times, 'hostBeat' | 'driftCheck'>;
  /** Pauses before what failed is tried again; the last one from then on. */
  readonly retriesMs?: readonly number[];
  readonly log: HostLog;
}

const minute = 60_000;
const RETRIES_MS = [30_000, minute, 2 * minute, 5 * minute, 10 * minute];

type Occasion = 'declared' | 'start' | 'drift' | 'retry';

export async function startAgent(deps: AgentDeps): Promise<{ stop(): Promise<void> }> {
  const { host, link, node, key, times, log } = deps;
  const { journal } = host;
  const retries = deps.retriesMs ?? RETRIES_MS;
  const reporter = startReporter({ link, journal, node, privateKey: key.privateKey, log });
  let overtaking = new AbortController();
  let isEnding = false;
  let due: Occasion | null = host.declaration() === null ? null : 'start';
  let working: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let failures = 0;

  function receive(delivery: Delivery): void {
    const last = host.declaration();
    const { mesh, meshPublicKey } = deps;
    const found = acceptEnvelope(delivery.body, { mesh, node, meshPublicKey, root: host.root, last });
    if (found.kind === 'refused') {
      log.warn({ node, sequence: found.sequence, reason: found.reason }, 'a declaration is refused');
      const declaration = heldOf(last);
      reporter.add({ declaration, modules: [], removed: [], refused: { sequence: found.sequence, reason: found.reason } });
    }
    if (found.kind === 'accepted') host.accept(found.declaration);
    // Only what is in the journal is taken.
    delivery.ack();
    if (found.kind !== 'accepted') return;
    log.info({ node, sequence: found.declaration.sequence, digest: found.declaration.digest }, 'a declaration is accepted');
    failures = 0;
    overtaking.abort();
    wake('declared');
    beat();
  }

  /** One that could not be journalled comes again: whatever was wrong with the disk, nothing was wrong with it. */
  async function take(delivery: Delivery): Promise<void> {
    try {
      receive(delivery);
    } catch (error) {
      throw new EnvironmentError(`a declaration could not be journalled: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }

  function wake(occasion: Occasion): void {
    if (isEnding) return;
    if (due !== 'declared') due = occasion;
    working ??= work().finally(() => {
      working = null;
      // Woken while the last turn was ending.
      if (due !== null) wake(due);
    });
  }

  async function work(): Promise<void> {
    for (let occasion = due; occasion !== null && !isEnding; occasion = due) {
      due = null;
      const declaration = host.declaration();
      if (declaration === null) return;
      overtaking = new AbortController();
      try {
        await turn(declaration, occasion, overtaking.signal);
      } catch (error) {
        if (error instanceof Overtaken) continue;
        // A disk that takes no journal, or a defect: what runs goes on running.
        log.error({ node, error: error instanceof Error ? error.stack : String(error) }, 'a pass could not be finished');
        failures++;
        plan(failures);
      }
    }
  }

  async function turn(declaration: Declaration, occasion: Occasion, signal: AbortSignal): Promise<void> {
    const pass = await host.engine.apply(declaration, signal);
    const held = heldOf(declaration);
    const isNew = held !== null && (journal.applied?.sequence !== held.sequence || journal.applied.digest !== held.digest);
    // At a start also what is as it was: the last that was said may be a failure that is over by now.
    if (isNew || occasion === 'start' || pass.hasChanged || pass.hasFailed || failures > 0) {
      const digests = moduleDigests(declaration);
      const modules = pass.modules.map((one) => ({ ...one, digest: digests.get(one.module) ?? '' }));
      reporter.add({ declaration: held, modules, removed: [...pass.removed], refused: null });
      say(declaration, occasion, pass);
    }
    // After the report: a kill in between reports twice rather than never.
    if (isNew) journal.write({ t: 'applied', applied: held });
    failures = pass.hasFailed ? failures + 1 : 0;
    plan(failures);
    if (isNew) beat();
  }

  function say({ sequence, digest }: Declaration, occasion: Occasion, pass: Pass): void {
    for (const { module, resource, message } of pass.left) log.warn({ node, module, resource, message }, 'a resource is still there');
    const changes = pass.modules.flatMap(({ changes: made }) => made.map(({ resource }) => resource));
    for (const { module, failures: failed } of pass.modules)
      for (const failure of failed) log.warn({ node, module, ...failure }, 'a resource failed');
    log.info({ node, sequence, digest, occasion, changes, removed: pass.removed }, pass.hasFailed ? 'applied in part' : 'applied');
  }

  function plan(failed: number): void {
    if (timer !== null) clearTimeout(timer);
    if (isEnding) return;
    const retryMs = failed === 0 ? times.driftCheck : (retries[Math.min(failed, retries.length) - 1] ?? times.driftCheck);
    timer = setTimeout(() => wake(failed === 0 ? 'drift' : 'retry'), Math.min(retryMs, times.driftCheck));
  }

  function beat(): void {
    const message: NodeBeat = {
      ...{ v: 1, type: 'beat', node, epoch: journal.epoch, at: new Date().toISOString(), publicKey: key.publicKey },
      ...{ sealKey: deps.sealKey, hostVersion: deps.version },
      reads: { versions: [DECLARATION_VERSION], shapes: [...shapeNames], features: [...FEATURES] },
      ...{ received: heldOf(host.declaration()), applied: journal.applied, reportNumber: journal.lastReport },
    };
    // One that is lost is followed by the next.
    void link
      .publish(nodeExchange(node), ROUTES.nodeBeat, sign(NODE_MESSAGE_TYPE, message, key.privateKey), {
        ...{ persistent: false, expirationMs: times.hostBeat * 4, timeoutMs: times.hostBeat },
      })
      .catch(() => undefined);
  }

  const beats = setInterval(beat, times.hostBeat);
  beat();
  const consumer = await link.consume(nodeQueue(node), { prefetch: 1 }, take);
  if (due !== null) wake(due);

  return {
    async stop() {
      isEnding = true;
      clearInterval(beats);
      if (timer !== null) clearTimeout(timer);
      overtaking.abort();
      await working;
      await consumer.stop();
      await reporter.stop();
    },
  };
}

function heldOf(declaration: Declaration | null): { sequence: number; digest: string } | null {
  return declaration === null ? null : { sequence: declaration.sequence, digest: declaration.digest };
}
