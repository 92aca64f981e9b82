/** What must exist in Temporal before anything works, made again whenever it is missing: a wiped Temporal heals. */
import { type Client, type Connection, ScheduleAlreadyRunning, ScheduleNotFoundError, ScheduleOverlapPolicy } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { SEARCH } from '../../workflows/shared';
import type { Times } from '../domain/times';

const KEYWORD = temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
const INT = temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_INT;

export const searchAttributes: Record<string, temporal.api.enums.v1.IndexedValueType> = {
  [SEARCH.verdict]: KEYWORD,
  [SEARCH.situation]: KEYWORD,
  [SEARCH.stuck]: KEYWORD,
  [SEARCH.outstanding]: INT,
};

/** Upserting an unregistered attribute fails workflow tasks for ever, so a worker starts only after this. */
export async function ensureSearchAttributes(client: Client): Promise<void> {
  const { operatorService } = client.connection as Connection;
  const { namespace } = client.options;
  const known = await operatorService.listSearchAttributes({ namespace });
  const missing = Object.entries(searchAttributes).filter(([name]) => known.customAttributes?.[name] === undefined);
  if (missing.length === 0) return;
  await operatorService.addSearchAttributes({ namespace, searchAttributes: Object.fromEntries(missing) });
  // Registration is eventually visible; bounded by the worker's own start-up deadline.
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const now = await operatorService.listSearchAttributes({ namespace });
    if (missing.every(([name]) => now.customAttributes?.[name] !== undefined)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the search attributes ${missing.map(([name]) => name).join(', ')} were added and are still not visible after 10 s`);
}

export interface ScheduleSpec {
  readonly id: string;
  readonly workflow: string;
  readonly everyMs: number;
}

function schedulesOf(times: Times): readonly ScheduleSpec[] {
  return [
    { id: 'watch-sources', workflow: 'watchSources', everyMs: Math.min(times.readRefs, 10_000) },
    { id: 'sweep', workflow: 'sweepModules', everyMs: times.sweep },
    { id: 'full-pass', workflow: 'fullPassModules', everyMs: times.fullPass },
  ];
}

/** @returns the ids of the schedules that were missing and have been made. */
export async function ensureSchedules(client: Client, taskQueue: string, times: Times): Promise<readonly string[]> {
  const made: string[] = [];
  for (const spec of schedulesOf(times)) {
    try {
      await client.schedule.getHandle(spec.id).describe();
      continue;
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    }
    try {
      await client.schedule.create({
        scheduleId: spec.id,
        spec: { intervals: [{ every: spec.everyMs }] },
        policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
        action: { type: 'startWorkflow', workflowType: spec.workflow, taskQueue, workflowId: spec.id, workflowRunTimeout: '10 minutes', args: [] },
      });
      made.push(spec.id);
    } catch (error) {
      // Another control process was faster.
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
  }
  return made;
}
