import { Connection, WorkflowClient } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { bundleWorkflowCode, NativeConnection, Worker } from '@temporalio/worker';
import { beating } from '../../src/temporal/beating';
import { eventually } from '../support/eventually';
import { taskQueue, temporalNamespace } from '../support/servers';

test('a pass whose process died ends soon, so that the schedule begins the next one', async () => {
  const { address, namespace } = await temporalNamespace();
  const queue = taskQueue();
  const connection = await Connection.connect({ address });
  const native = await NativeConnection.connect({ address });
  const workflowBundle = await bundleWorkflowCode({ workflowsPath: require.resolve('../../workflows/index') });
  const worker = await Worker.create({ connection: native, namespace, taskQueue: queue, workflowBundle, identity: 'test' });
  try {
    await worker.runUntil(async () => {
      const client = new WorkflowClient({ connection, namespace });
      const handle = await client.start('watchSources', { workflowId: 'watch-sources', taskQueue: queue });
      // Takes the pass as a worker would, and is never heard of again.
      const poll = { namespace, taskQueue: { name: queue }, identity: 'dies' };
      const taken = await connection.withDeadline(Date.now() + 30_000, () => connection.workflowService.pollActivityTaskQueue(poll));
      expect(taken.activityType?.name).toBe('readSources');
      await eventually(async () => (await handle.describe()).status.name === 'FAILED', { timeoutMs: 60_000, everyMs: 250 });
    });
  } finally {
    await native.close();
    await connection.close();
  }
}, 90_000);

test('a pass that takes long is heard of while it goes on', async () => {
  const activity = new MockActivityEnvironment();
  let beats = 0;
  activity.on('heartbeat', () => {
    beats += 1;
  });
  for (const pass of ['readSources', 'sweep', 'fullPass'] as const) {
    const before = beats;
    const long = async (): Promise<number> => {
      await eventually(() => beats >= before + 3);
      return 7;
    };
    expect(await activity.run(beating({ readSources: long, sweep: long, fullPass: long }, 20)[pass])).toBe(7);
  }
});
