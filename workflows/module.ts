/**
 * The durable workflow of one module, `module/<name>`: compare, carry out what is next, compare again. It holds no
 * fact: whatever it forgets, the next comparison finds again. One run is one delivery.
 */

import { defineSearchAttributeKey } from '@temporalio/common';
import {
  ActivityCancellationType,
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  defineUpdate,
  isCancellation,
  proxyLocalActivities,
  scheduleActivity,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { type Ask, type Asked, type Decisions, type Look, type ModuleInput, NUDGE, SEARCH, VERBS } from './shared';

export const nudge = defineSignal(NUDGE);
export const lineQuery = defineQuery<string>('line');
export const comparisonQuery = defineQuery<Look | null>('comparison');

const { advance, carryOut } = proxyLocalActivities<Decisions>({
  startToCloseTimeout: '20s',
  // The store may be away for a while; the facts wait for it.
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
});

/** A signal is an event of history: a run does not take more than this many before it continues as new. */
const MOST_SIGNALS = 2_000;
/** With nothing to do, look again after this long, jittered so that ten thousand modules do not look at once. */
const FALLBACK_MS = 6 * 3_600_000;

/** Temporal refuses a summary that is much longer. */
const MOST_SUMMARY = 180;

const verdictKey = defineSearchAttributeKey(SEARCH.verdict, 'KEYWORD');
const situationKey = defineSearchAttributeKey(SEARCH.situation, 'KEYWORD');
const stuckKey = defineSearchAttributeKey(SEARCH.stuck, 'KEYWORD');
const outstandingKey = defineSearchAttributeKey(SEARCH.outstanding, 'INT');

export async function moduleWorkflow(input: ModuleInput): Promise<void> {
  const { module } = input;
  const inFlight = new Map<string, CancellationScope>();
  let wakes = 0;
  let signals = 0;
  let hasDelivered = false;
  let latest: Look | null = input.resumed;

  setHandler(nudge, () => {
    signals += 1;
    wakes += 1;
  });
  setHandler(lineQuery, () => (latest === null ? `${module}  not compared yet` : `${module}  ${latest.line}`));
  setHandler(comparisonQuery, () => latest);
  for (const verb of VERBS) {
    setHandler(
      defineUpdate<string, [Ask]>(verb),
      async (ask) => {
        const answer = await carryOut(module, verb, ask);
        hasDelivered = true;
        wakes += 1;
        return answer;
      },
      { validator: (ask) => validate(verb, ask) },
    );
  }

  const start = (kind: keyof Asked, requestId: string, about: string): void => {
    const scope = new CancellationScope();
    inFlight.set(requestId, scope);
    hasDelivered = true;
    // Not awaited: the loop goes on comparing while a builder works. Its end, whatever it is, is one more look.
    void scope
      .run(() => awaitAnswer(kind, requestId, about))
      // Nothing that an activity throws is meant to be final; if it was, that is no reason for a tight circle.
      .catch(() => sleep('1 minute', { summary: `${kind} ${about} ended badly: look again` }))
      .finally(() => {
        inFlight.delete(requestId);
        wakes += 1;
      });
  };

  let shown: Look | null = null;
  // A run that follows a delivery knows what it would find: it waits for something to change.
  // What came before it began is such a change: its handler has run by now.
  let isResting = input.resumed !== null && wakes === 0;
  if (latest !== null) shown = show(input, latest, null);
  for (;;) {
    const seen = wakes;
    if (!isResting) {
      const turn = await advance(module);
      for (const id of turn.cancelled) inFlight.get(id)?.cancel();
      hasDelivered ||= turn.hasActed || turn.cancelled.length > 0;
      latest = turn.look;
      if (latest === null) return;
      shown = show(input, latest, shown);
      awaitRequest(latest);
    }
    isResting = false;
    const info = workflowInfo();
    const isCrowded = info.continueAsNewSuggested || signals >= MOST_SIGNALS;
    const isBack = hasDelivered && latest?.atRest === true && inFlight.size === 0;
    if (wakes === seen && latest !== null && (isBack || isCrowded)) {
      await condition(allHandlersFinished);
      if (wakes === seen) await continueAsNew<typeof moduleWorkflow>({ ...input, resumed: isCrowded && !isBack ? null : latest });
      continue;
    }
    if (wakes === seen) await waitForChange(latest, () => wakes !== seen);
  }

  /** Joins the request that is open, whoever opened it: this run or one before it. */
  function awaitRequest(found: Look): void {
    if ((found.next !== 'inspect' && found.next !== 'build') || found.requestId === null) return;
    if (!inFlight.has(found.requestId)) start(found.next, found.requestId, found.about ?? '');
  }
}

function validate(verb: string, ask: Ask): void {
  if (ask.who.trim() === '') throw ApplicationFailure.nonRetryable('who asks is missing', 'Refused');
  if (ask.why.trim() === '') throw ApplicationFailure.nonRetryable(`${verb} needs a reason: say it with --why`, 'Refused');
  if (verb === 'rollback' && ask.buildId === null) throw ApplicationFailure.nonRetryable('rollback names the build to go back to', 'Refused');
}

/** Ends when the answer is stored, whatever it says: the facts speak, not the result. */
async function awaitAnswer(kind: keyof Asked, requestId: string, about: string): Promise<void> {
  try {
    await scheduleActivity<string>(kind, [requestId], {
      activityId: requestId,
      startToCloseTimeout: '30 days',
      cancellationType: ActivityCancellationType.TRY_CANCEL,
      retry: { initialInterval: '5s', backoffCoefficient: 2, maximumInterval: '10m' },
      summary: `${kind} ${about}`,
    });
  } catch (error) {
    if (!isCancellation(error)) throw error;
  }
}

async function waitForChange(latest: Look | null, isChanged: () => boolean): Promise<void> {
  const jitter = 0.75 + Math.random() / 2;
  const dueMs = latest?.until == null ? FALLBACK_MS * jitter : Math.max(Date.parse(latest.until) - Date.now(), 1_000);
  await condition(isChanged, dueMs, { summary: waitsOn(latest) });
}

function waitsOn(latest: Look | null): string {
  if (latest === null) return 'look again';
  switch (latest.next) {
    case 'track':
      return `wait for ${latest.outstanding} of ${latest.placements} nodes`;
    case 'inspect':
    case 'build':
      return `wait for the builder: ${latest.next} ${latest.about ?? ''}`;
    case 'ask':
      return `wait for a person to declare ${latest.about ?? ''}`;
    case 'wait':
      return `wait for ${latest.about ?? 'what it needs'}`.slice(0, MOST_SUMMARY);
    case 'nothing':
      return latest.situation === 'in step' ? 'in step: wait for a change' : `${latest.situation}: wait for a change`;
    default:
      return latest.reason.slice(0, MOST_SUMMARY);
  }
}

/** Shows a look in the Temporal UI; only what differs from what is shown becomes an event of history. */
function show(input: ModuleInput, found: Look, shown: Look | null): Look {
  setCurrentDetails(`**${input.module}**  ${found.line}\n\n${found.situation}: ${found.reason}`);
  if (shown === null || shown.line !== found.line) {
    upsertMemo({ line: found.line, reason: found.reason, repository: input.links.repository, board: input.links.board });
  }
  if (
    shown === null ||
    shown.situation !== found.situation ||
    shown.verdict !== found.verdict ||
    shown.isStuck !== found.isStuck ||
    shown.outstanding !== found.outstanding
  ) {
    upsertSearchAttributes([
      { key: verdictKey, value: found.verdict },
      { key: situationKey, value: found.situation },
      { key: stuckKey, value: found.isStuck ? 'yes' : 'no' },
      { key: outstandingKey, value: found.outstanding },
    ]);
  }
  return found;
}
