/** Runs the workflow of a module in the time-skipping server, each on a task queue and a worker of its own. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { bundleWorkflowCode, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { workflowIdOf } from '../../src/temporal/client';
import { searchAttributes } from '../../src/temporal/ensure';
import type { Ask, Look, ModuleInput } from '../../workflows/shared';
import { eventually } from './eventually';
import { World } from './world';

const executable = process.env.TALLY_TEST_SERVER ?? '';

export let env: TestWorkflowEnvironment;
let workflowBundle: WorkflowBundleWithSourceMap;

beforeAll(async () => {
  workflowBundle = await bundleWorkflowCode({ workflowsPath: require.resolve('../../workflows/index') });
  env = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: executable } },
    client: { identity: 'test' },
  });
  // This server knows how to add them and not how to list them.
  await env.connection.operatorService.addSearchAttributes({ namespace: env.namespace ?? 'default', searchAttributes });
}, 120_000);

afterAll(async () => {
  await env?.teardown();
});

export interface Run {
  readonly world: World;
  readonly handle: WorkflowHandle;
  nudge(): Promise<void>;
  look(): Promise<Look | null>;
  /** Stores the answer, then completes the activity, as the consumer of answers does. */
  answer(id: string, verdict?: 'fit' | 'failed'): Promise<void>;
  until(what: (world: World) => boolean): Promise<void>;
}

let unique = 0;

/** Runs one module's workflow on a worker of its own, and leaves nothing behind. */
export async function withModule(
  run: (module: Run) => Promise<void>,
  options: { cached?: number; record?: string; changes?: (module: string) => World; resumed?: Look } = {},
): Promise<void> {
  unique += 1;
  const module = `module-${unique}`;
  const taskQueue = `queue-${unique}`;
  const world = options.changes?.(module) ?? new World(module);
  const worker = await Worker.create({
    connection: env.nativeConnection,
    namespace: env.namespace ?? 'default',
    taskQueue,
    workflowBundle,
    identity: 'test',
    activities: world.activities(),
    maxCachedWorkflows: options.cached ?? 50,
  });
  const workflowId = workflowIdOf(module);
  const start = {
    workflowId,
    taskQueue,
    args: [{ module, links: { repository: 'file:///m.git', board: 'http://board' }, resumed: options.resumed ?? null } satisfies ModuleInput],
  };
  const handle = env.client.workflow.getHandle(workflowId);
  await worker.runUntil(async () => {
    const { signaledRunId } = await env.client.workflow.signalWithStart('moduleWorkflow', { ...start, signal: 'nudge', signalArgs: [] });
    const nudge = async (): Promise<void> =>
      void (await env.client.workflow.signalWithStart('moduleWorkflow', { ...start, signal: 'nudge', signalArgs: [] }));
    await run({
      world,
      handle,
      nudge,
      look: () => handle.query<Look | null>('comparison'),
      answer: async (id, verdict) => {
        world.storeAnswer(id, verdict);
        await env.client.activity.complete({ workflowId, activityId: id }, 'answered');
      },
      until: (what) => eventually(async () => expect(what(world)).toBe(true), { timeoutMs: 20_000 }),
    });
    if (options.record !== undefined && process.env.TALLY_RECORD_HISTORIES !== undefined) await record(workflowId, signaledRunId, options.record);
    await handle.terminate('the test is over').catch(() => undefined);
  });
}

export const ask = (changes: Partial<Ask> = {}): Ask => ({
  id: `ask-${Math.random()}`,
  who: 'ada',
  why: 'the fair opens',
  buildId: null,
  ...changes,
});
export const openId = (world: World, kind: 'inspect' | 'build'): string => world.facts.requests.find((one) => one.kind === kind)?.id ?? '';
export const isAsked =
  (kind: 'inspect' | 'build') =>
  (world: World): boolean =>
    world.asked.includes(openId(world, kind));

/** Writes the history of a module's first run, for test/workflows/replay.test.ts. */
async function record(workflowId: string, runId: string, name: string): Promise<void> {
  const history = await env.client.workflow.getHandle(workflowId, runId).fetchHistory();
  withoutTraces(history);
  await writeFile(path.join(__dirname, '../histories', `${name}.history`), temporal.api.history.v1.History.encode(history).finish());
}

/** They name the folders of whoever records, and a replay asks for none of them. */
function withoutTraces(part: object): void {
  for (const [key, value] of Object.entries(part)) {
    if (key === 'stackTrace') Object.assign(part, { stackTrace: '' });
    else if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) withoutTraces(value);
  }
}
