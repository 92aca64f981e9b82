/** The Temporal worker of one control process: workflows, local decisions, asked activities and passes on one task queue. */
import { NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { type AskedDeps, createAsked } from '../../activities/asked';
import { createDecisions, type DecisionDeps } from '../../activities/decisions';
import type { Passes } from '../../workflows/shared';
import { beating } from './beating';

export interface ControlWorkerOptions {
  readonly address: string;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly identity: string;
  readonly decisions: DecisionDeps;
  readonly asked: AskedDeps;
  readonly passes: Passes;
  /** Idle workflows kept in memory, a third of a MiB each. */
  readonly maxCachedWorkflows?: number;
  readonly workflowBundle: WorkflowBundleOption;
  readonly connection?: NativeConnection;
}

/** Throws when the server cannot be reached: the caller tries again at boot. */
export async function createControlWorker(options: ControlWorkerOptions): Promise<{ worker: Worker; connection: NativeConnection }> {
  const connection = options.connection ?? (await NativeConnection.connect({ address: options.address }));
  const worker = await Worker.create({
    connection,
    namespace: options.namespace,
    taskQueue: options.taskQueue,
    identity: options.identity,
    workflowBundle: options.workflowBundle,
    activities: { ...createDecisions(options.decisions), ...createAsked(options.asked), ...beating(options.passes) },
    maxCachedWorkflows: options.maxCachedWorkflows ?? 200,
    maxConcurrentActivityTaskExecutions: 50,
    maxConcurrentWorkflowTaskExecutions: 40,
    maxConcurrentLocalActivityExecutions: 40,
    shutdownGraceTime: '10s',
  });
  return { worker, connection };
}
