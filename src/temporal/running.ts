import type { Client } from '@temporalio/client';
import { MODULE_WORKFLOW } from '../../workflows/shared';
import { EnvironmentError } from '../domain/errors';
import { workflowIdOf } from './client';

const TIMEOUT_MS = 20_000;

/** The modules whose workflow runs, as Temporal's index says: a moment behind, which costs a nudge too many. */
export async function runningModules(client: Client): Promise<ReadonlySet<string>> {
  const query = `WorkflowType = '${MODULE_WORKFLOW}' AND ExecutionStatus = 'Running'`;
  const prefix = workflowIdOf('');
  const names = new Set<string>();
  try {
    await client.connection.withDeadline(Date.now() + TIMEOUT_MS, async () => {
      for await (const { workflowId } of client.workflow.list({ query })) names.add(workflowId.slice(prefix.length));
    });
  } catch (error) {
    throw new EnvironmentError(`Temporal did not list its workflows: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  return names;
}
