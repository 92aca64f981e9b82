/**
 * The control plane's side of Temporal: nudging, asking and completing. It holds nothing; every call has a deadline,
 * and a Temporal that is away is an EnvironmentError that says so.
 */

import { ActivityNotFoundError, Client, Connection, WithStartWorkflowOperation, WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure, type Workflow, WorkflowIdConflictPolicy } from '@temporalio/common';
import { type Ask, MODULE_WORKFLOW, type ModuleInput, NUDGE, type Verb } from '../../workflows/shared';
import { EnvironmentError, UsageError } from '../domain/errors';

export interface ModuleRef {
  readonly name: string;
  readonly repository: string;
}

export type Completion =
  | { readonly kind: 'done'; readonly summary: string }
  /** Environmental: Temporal starts the activity again after the delay. */
  | { readonly kind: 'retry'; readonly reason: string; readonly delayMs: number };

export interface TemporalLink {
  readonly client: Client;
  /** Look again now; starts the module's workflow where there is none. */
  nudge(module: ModuleRef): Promise<void>;
  /** Asks for an operator's verb and waits for its one-line answer; a refusal is a UsageError. */
  update(module: ModuleRef, verb: Verb, ask: Ask): Promise<string>;
  /** Ends the activity of a request; that there is none (any more) is success, since the facts are stored first. */
  completeRequest(module: string, requestId: string, completion: Completion): Promise<void>;
  close(): Promise<void>;
}

export interface TemporalOptions {
  readonly address: string;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly boardUrl: string;
  /** For each call. */
  readonly timeoutMs?: number;
}

export function workflowIdOf(module: string): string {
  return `module/${module}`;
}

/** Connects lazily: that the server is down now is an error of the calls, not of this. */
export function connectTemporal(options: TemporalOptions): TemporalLink {
  const connection = Connection.lazy({ address: options.address, connectTimeout: '5s' });
  const client = new Client({ connection, namespace: options.namespace, identity: `tally-control-${process.pid}` });
  return temporalLink(client, connection, options);
}

function temporalLink(
  client: Client,
  connection: Pick<Connection, 'withDeadline' | 'close'>,
  options: Omit<TemporalOptions, 'address' | 'namespace'>,
): TemporalLink {
  const timeoutMs = options.timeoutMs ?? 10_000;

  /** One call within its deadline; whatever gRPC says of an absent server becomes one line. */
  async function call<T>(what: string, run: () => Promise<T>): Promise<T> {
    try {
      return await connection.withDeadline(Date.now() + timeoutMs, run);
    } catch (error) {
      if (error instanceof UsageError || error instanceof ActivityNotFoundError || error instanceof WorkflowUpdateFailedError) throw error;
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      throw new EnvironmentError(`Temporal did not ${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause: error });
    }
  }

  const startOptions = (module: ModuleRef): { workflowId: string; taskQueue: string; args: [ModuleInput]; staticSummary: string } => ({
    workflowId: workflowIdOf(module.name),
    taskQueue: options.taskQueue,
    args: [{ module: module.name, links: { repository: module.repository, board: `${options.boardUrl}/#${module.name}` }, resumed: null }],
    staticSummary: `module ${module.name}`,
  });

  return {
    client,
    async nudge(module) {
      await call(`take a nudge for ${module.name}`, () =>
        client.workflow.signalWithStart(MODULE_WORKFLOW, { ...startOptions(module), signal: NUDGE, signalArgs: [] }),
      );
    },
    async update(module, verb, ask) {
      const startWorkflowOperation = new WithStartWorkflowOperation(MODULE_WORKFLOW, {
        ...startOptions(module),
        workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
      });
      try {
        return await call(`take ${verb} for ${module.name}`, () =>
          client.workflow.executeUpdateWithStart<Workflow, string, [Ask]>(verb, { args: [ask], updateId: ask.id, startWorkflowOperation }),
        );
      } catch (error) {
        if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure) throw new UsageError(error.cause.message);
        throw error;
      }
    },
    async completeRequest(module, requestId, completion) {
      const activity = { workflowId: workflowIdOf(module), activityId: requestId };
      try {
        await call(`complete ${requestId} of ${module}`, () =>
          completion.kind === 'done'
            ? client.activity.complete(activity, completion.summary)
            : client.activity.fail(
                activity,
                ApplicationFailure.create({
                  message: completion.reason,
                  type: 'Environment',
                  nonRetryable: false,
                  nextRetryDelay: completion.delayMs,
                }),
              ),
        );
      } catch (error) {
        if (!(error instanceof ActivityNotFoundError)) throw error;
      }
    },
    close: () => connection.close(),
  };
}
