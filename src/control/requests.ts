/** Every 10 s: what was asked of builders and went astray. Facts first; Temporal's activities follow them. */
import { EnvironmentError } from '../domain/errors';
import { markCompleted, type OverdueRequests, overdueRequests } from '../inventory/overdue';
import { beginPublish, markPublished } from '../inventory/requests';
import { EXCHANGES } from '../link';
import type { ControlDeps } from './deps';
import { forEachLimited } from './limit';
import { type Loop, startLoop } from './loop';

const AT_A_TIME = 16;

export function startRequestPass(deps: ControlDeps): Loop {
  const { db, link, times, now } = deps;
  let heard: { readonly connection: number; readonly since: Date } | null = null;
  return startLoop({
    name: 'request pass',
    log: deps.log,
    pauseMs: () => times.requestPass,
    pass: async () => {
      // While we, the broker or the store were away no beat came in, and that says nothing about a builder.
      const connection = link.isUp() ? link.connections() : null;
      if (connection === null) heard = null;
      else if (heard?.connection !== connection) heard = { connection, since: now() };
      try {
        return await passRequests(deps, await overdueRequests(db, now(), times, heard?.since ?? now()));
      } catch (error) {
        heard = null;
        throw error;
      }
    },
  });
}

async function passRequests(deps: ControlDeps, { lost, unpublished, ended, unclaimed }: OverdueRequests): Promise<number> {
  const { db, link, temporal, times, log } = deps;

  await forEachLimited([...lost, ...unpublished], AT_A_TIME, async ({ module, request, reason, delayMs }) => {
    await tolerating(deps, { module, request }, () => temporal.completeRequest(module, request, { kind: 'retry', reason, delayMs }));
  });

  // Its activity waits out a backoff of its own, which nobody can cut short, or there is none: then it is published from here.
  const forgotten = link.isUp() ? unpublished.filter(({ overdueMs }) => overdueMs > 2 * times.unpublished) : [];
  await forEachLimited(forgotten, AT_A_TIME, async ({ module, request }) => {
    await tolerating(deps, { module, request }, async () => await publishNow(deps, request));
  });

  const completed: string[] = [];
  await forEachLimited(ended, AT_A_TIME, async ({ module, request, outcome }) => {
    await tolerating(deps, { module, request }, async () => {
      await temporal.completeRequest(module, request, { kind: 'done', summary: outcome });
      completed.push(request);
    });
  });
  if (completed.length > 0) await markCompleted(db, completed);

  await forEachLimited(unclaimed, AT_A_TIME, async ({ module, request, routingKey, body }) => {
    await tolerating(deps, { module, request }, async () => {
      await link.publish(EXCHANGES.requests, routingKey, body);
      log.info({ module, build: request }, 'nobody claimed it though a builder beats: published again');
    });
  });
  return lost.length + unpublished.length + ended.length + unclaimed.length;
}

/** Should the activity publish it as well, one of the two is claimed. */
async function publishNow({ db, link, now }: ControlDeps, request: string): Promise<void> {
  const begun = await beginPublish(db, request, now());
  if (begun.kind !== 'publish') return;
  await link.publish(EXCHANGES.requests, begun.routingKey, begun.body);
  await markPublished(db, request, begun.attempt);
}

/** Temporal or the broker being away is tried again by the next pass. */
async function tolerating({ log }: ControlDeps, { module, request }: { module: string; request: string }, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof EnvironmentError) log.info({ module, build: request, reason: error.message }, 'left to the next pass');
    else log.error({ module, build: request, err: error }, 'left to the next pass');
  }
}
