/** What builders say: claims, answers, beats and log lines. */
import { EnvironmentError } from '../domain/errors';
import { type Recorded, recordAnswer } from '../inventory/answers';
import { beatRequests, claimRequest } from '../inventory/claims';
import { appendLog } from '../inventory/logs';
import { markCompleted } from '../inventory/overdue';
import { type Consumer, declarePlatform, QUEUES } from '../link';
import { answer, builderBeat, claim, logLines } from '../schema/messages';
import type { ControlDeps } from './deps';
import { createLimit } from './limit';
import { consumeBatches, readBody } from './reading';

const REPLY_TIMEOUT_MS = 5_000;
const OUR_ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;
const COMPLETIONS_AT_A_TIME = 32;
/** More than these are left to the request pass, which completes whatever is answered. */
const MOST_COMPLETIONS_WAITING = 1_000;

export async function consumeClaims({ db, link, now }: ControlDeps): Promise<Consumer> {
  return await link.consume(QUEUES.claims, { prefetch: 50 }, async (delivery) => {
    const read = readBody(delivery, claim);
    if ('reason' in read) {
      await delivery.reject(read.reason);
      return;
    }
    const reply = await claimRequest(db, read.value, now());
    delivery.ack();
    if (delivery.replyTo === null) return;
    const options = { correlationId: delivery.correlationId ?? '', persistent: false, timeoutMs: REPLY_TIMEOUT_MS };
    await link.publish('', delivery.replyTo, reply, options).catch((error: unknown) => {
      // Who asked is gone, or asks again and gets the same.
      if (!(error instanceof EnvironmentError)) throw error;
    });
  });
}

/** Stored, committed, acknowledged, and only then is the activity completed: what gets lost after that, the request pass finds. */
export async function consumeAnswers(deps: ControlDeps): Promise<Consumer> {
  const { db, link, now, times, log } = deps;
  const limit = createLimit(COMPLETIONS_AT_A_TIME);
  return await link.consume(QUEUES.answers, { prefetch: 50 }, async (delivery) => {
    const read = readBody(delivery, answer);
    if ('reason' in read) {
      await delivery.reject(read.reason);
      return;
    }
    const { request } = read.value;
    const recorded = await recordAnswer(db, read.value, now(), times);
    const { module } = recorded;
    if (module === null) {
      // The form of an id of ours: its module was removed while a builder worked for it, and nobody waits for the answer.
      if (OUR_ID.test(request)) {
        log.info({ request }, 'an answer to a request that is gone with its module');
        delivery.ack();
      } else await delivery.reject(`there is no request ${request}`);
      return;
    }
    delivery.ack();
    if (limit.waiting() > MOST_COMPLETIONS_WAITING) return;
    try {
      await limit.run(() => complete(deps, module, request, recorded));
    } catch (error) {
      log.warn({ module, build: request, err: error }, 'the answer is stored; the next pass completes its activity');
    }
  });
}

async function complete({ temporal, db }: ControlDeps, module: string, request: string, recorded: Recorded): Promise<void> {
  if (recorded.retry !== null) {
    await temporal.completeRequest(module, request, { kind: 'retry', ...recorded.retry });
  } else if (recorded.final) {
    await temporal.completeRequest(module, request, { kind: 'done', summary: recorded.outcome });
    await markCompleted(db, [request]);
  }
}

/** @param platforms whose queues stand; a builder that brings another one gets its queue. */
export async function consumeBuilderBeats({ db, link, now }: ControlDeps, platforms: Set<string>): Promise<Consumer> {
  return await consumeBatches(link, {
    queue: QUEUES.builderBeats,
    most: 200,
    afterMs: 100,
    read: (delivery) => readBody(delivery, builderBeat),
    store: async (beats) => {
      await beatRequests(db, beats, now());
      for (const platform of new Set(beats.flatMap((beat) => beat.platforms))) {
        if (platforms.has(platform)) continue;
        await declarePlatform(link, platform);
        platforms.add(platform);
      }
    },
  });
}

export async function consumeLogs({ db, link }: ControlDeps): Promise<Consumer> {
  return await consumeBatches(link, {
    queue: QUEUES.logs,
    most: 100,
    afterMs: 100,
    read: (delivery) => readBody(delivery, logLines),
    store: async (messages) => await appendLog(db, messages),
  });
}
