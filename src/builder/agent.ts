import type { Logger } from 'pino';
import type { Consumer, Delivery, KeyPair, Link } from '../link';
import { EXCHANGES, QUEUES, ROUTES } from '../link';
import { buildQueue } from '../link/topology';
import type { RegistryClient } from '../registry';
import { type Answer, type BuildRequest, buildRequest, type InspectRequest, inspectRequest } from '../schema/messages';
import { completeAnswer } from './answers';
import { startBeats } from './beats';
import { performBuild } from './build';
import { createClaims } from './claims';
import type { BuilderConfig } from './config';
import { createGate } from './gate';
import type { BuilderHome } from './home';
import { performInspection } from './inspect';
import type { Job } from './job';
import type { Journal } from './journal';
import { createBuildLog } from './log';
import { createSandbox } from './sandbox';
import { createStopper } from './stopper';

/**
 * The builder as the broker sees it. A delivery becomes a job; the same request again joins it. A job is claimed, done, its
 * answer journalled and confirmed away, and only then is what was delivered acknowledged.
 */

export interface BuilderDeps {
  link: Link;
  registry: RegistryClient;
  home: BuilderHome;
  journal: Journal;
  key: KeyPair;
  /** Of Tally, for the beats. */
  version: string;
  config: Pick<BuilderConfig, 'name' | 'platforms' | 'beatMs' | 'limits'>;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

const ANSWER_RETRY_MOST_MS = 10_000;

export async function startBuilder(deps: BuilderDeps): Promise<{ stop(): Promise<void> }> {
  const { link, home, journal, config, log } = deps;
  const { name } = config;
  const jobs = new Map<string, Job>();
  const working = new Set<Promise<void>>();
  const ending = createStopper();
  const gate = createGate(ending.signal);
  const claims = createClaims({ link, builder: name, platforms: config.platforms, ending: ending.signal });
  const sandbox = createSandbox(home.groups);
  const beats = startBeats({ link, jobs, claims, publicKey: deps.key.publicKey, version: deps.version, config });

  async function receive(delivery: Delivery): Promise<void> {
    // Held, not put back: it would come again at once. Closing the channel gives it back.
    if (ending.signal.aborted) return;
    const request = parseRequest(delivery.body);
    if (request === null) {
      log.warn({ queue: delivery.routingKey }, 'a request could not be read');
      await delivery.reject('it is not a request that this builder can read');
      return;
    }
    const id = `${request.request}/${request.attempt}`;
    const joined = jobs.get(id);
    if (joined !== undefined) {
      log.info({ request: id, module: request.module }, 'delivered again, joins what runs');
      joined.deliveries.push(delivery);
      return;
    }
    const job: Job = { request, deliveries: [delivery], stopper: createStopper(), step: null, since: new Date() };
    jobs.set(id, job);
    const done = work(job)
      .catch((error: unknown) => {
        // A defect, or a disk that takes no journal: nothing was answered, so the request goes back.
        log.error({ request: id, error: String(error) }, 'a request could not be worked on');
        return claims.pause();
      })
      .finally(() => {
        forget(job);
        for (const open of job.deliveries) open.requeue();
      });
    working.add(done);
    void done.finally(() => working.delete(done));
  }

  /** Returns with its deliveries acknowledged, or not: those go back. */
  async function work(job: Job): Promise<void> {
    const { request } = job;
    if (await answerAgain(job)) return;
    const leave = request.kind === 'build' ? await gate.enter() : () => undefined;
    if (leave === null) return;
    let isUnclaimed = false;
    try {
      // What was ahead of it may have been an earlier attempt at the same.
      if (await answerAgain(job)) return;
      const reply = await claims.ask(request);
      if (reply === null) isUnclaimed = true;
      else if (reply.answer === 'drop') {
        log.info({ request: request.request, reason: reply.reason }, 'not to be begun');
        settle(job);
      } else await perform(job);
    } finally {
      leave();
    }
    if (isUnclaimed) await claims.pause();
  }

  async function answerAgain(job: Job): Promise<boolean> {
    const { request, attempt } = job.request;
    const earlier = journal.find(request, attempt);
    if (earlier === null) return false;
    log.info({ request, outcome: earlier.outcome }, 'answered before, answers the same');
    await send(job, earlier);
    return true;
  }

  async function perform(job: Job): Promise<void> {
    const { request, stopper } = job;
    const startedAt = new Date();
    const begun = { request: request.request, attempt: request.attempt, module: request.module, commit: request.commit };
    const onStep = (step: string): void => {
      job.step = step;
      job.since = new Date();
      beats.now();
    };
    if (ending.signal.aborted) return;
    onStep(request.kind === 'build' ? 'begin' : 'inspect');
    log.info(begun, `${request.kind} begins`);
    const found =
      request.kind === 'build'
        ? await performBuild({ ...deps, builder: name, limits: config.limits, sandbox }, { request, log: openLog(request), stopper, onStep })
        : await performInspection(request, { home, limits: config.limits }, stopper);
    const answer = completeAnswer(request, name, startedAt, found);
    log.info({ ...begun, outcome: answer.outcome, ...('reason' in answer ? { reason: answer.reason } : {}) }, `${request.kind} ended`);
    // An answer that is not in the journal is worth more than none: at worst the same is built again.
    await journal
      .append(answer)
      .catch((error: unknown) => log.error({ request: request.request, error: String(error) }, 'the journal could not be written'));
    await send(job, answer);
    if (request.kind === 'build')
      await home.prune(config.limits.cacheBytes).catch((error: unknown) => log.warn({ error: String(error) }, 'homes could not be pruned'));
  }

  function openLog(request: BuildRequest) {
    const key = { request: request.request, attempt: request.attempt };
    return createBuildLog({
      publish: (from, lines) => link.publish(EXCHANGES.builders, ROUTES.log, { v: 1, ...key, from, lines }, { persistent: false, timeoutMs: 5_000 }),
    });
  }

  /** Until the broker has it: an answer is never given up while the builder lives, and afterwards the journal has it. */
  async function send(job: Job, answer: Answer): Promise<void> {
    for (let waitMs = 200; ; waitMs = Math.min(waitMs * 2, ANSWER_RETRY_MOST_MS)) {
      try {
        await link.publish(EXCHANGES.builders, ROUTES.answer, answer);
        settle(job);
        return;
      } catch (error) {
        if (ending.signal.aborted) return;
        log.warn({ request: answer.request, error: String(error) }, 'an answer could not be sent, is tried again');
        await claims.sleep(waitMs);
      }
    }
  }

  /** First out of the map: what is delivered from now on is a job of its own, which the journal answers. */
  function settle(job: Job): void {
    forget(job);
    for (const delivery of job.deliveries.splice(0)) delivery.ack();
  }

  function forget({ request }: Job): void {
    jobs.delete(`${request.request}/${request.attempt}`);
  }

  const consumers: Consumer[] = [];
  for (const queue of [QUEUES.inspect, ...config.platforms.map(buildQueue)]) consumers.push(await link.consume(queue, { prefetch: 1 }, receive));

  return {
    async stop() {
      const reason = { kind: 'shutdown', reason: `builder ${name} was shut down` } as const;
      ending.stop(reason);
      for (const job of jobs.values()) job.stopper.stop(reason);
      await Promise.all(working);
      await Promise.all(consumers.map((consumer) => consumer.stop()));
      await beats.stop();
    },
  };
}

function parseRequest(body: Buffer): InspectRequest | BuildRequest | null {
  try {
    const content: unknown = JSON.parse(body.toString('utf8'));
    const parsed = inspectRequest.or(buildRequest).safeParse(content);
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
