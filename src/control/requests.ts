/** Every 10 s: what was asked of builders and went astray. Facts first; Temporal's activities follow them. */
import { EnvironmentError } from '../domain/errors';
import { markCompleted, overdueRequests } from '../inventory/overdue';
import { EXCHANGES } from '../link';
import type { ControlDeps } from './deps';
import { forEachLimited } from './limit';
import { type Loop, startLoop } from './loop';

const AT_A_TIME = 16;

export function startRequestPass(deps: ControlDeps): Loop {
  return startLoop({ name: 'request pass', log: deps.log, pauseMs: () => deps.times.requestPass, pass: async () => await passRequests(deps) });
}

async function passRequests(deps: ControlDeps): Promise<number> {
  const { db, link, temporal, times, now, log } = deps;
  const { lost, unpublished, ended, unclaimed } = await overdueRequests(db, now(), times);

  await forEachLimited([...lost, ...unpublished], AT_A_TIME, async ({ module, request, reason, delayMs }) => {
    await tolerating(deps, { module, request }, () => temporal.completeRequest(module, request, { kind: 'retry', reason, delayMs }));
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

/** Temporal or the broker being away is tried again by the next pass. */
async function tolerating({ log }: ControlDeps, { module, request }: { module: string; request: string }, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof EnvironmentError) log.info({ module, build: request, reason: error.message }, 'left to the next pass');
    else log.error({ module, build: request, err: error }, 'left to the next pass');
  }
}
