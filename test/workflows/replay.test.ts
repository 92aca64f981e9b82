import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { temporal } from '@temporalio/proto';
import { bundleWorkflowCode, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

/**
 * Histories recorded from earlier code must replay on today's, or deliveries in flight break when the control plane is
 * updated. Record with TALLY_RECORD_HISTORIES=1; an old history is kept, a change of the workflow is guarded by a patch.
 */
const folder = path.join(__dirname, '../histories');
const names = readdirSync(folder).filter((file) => file.endsWith('.history'));

let workflowBundle: WorkflowBundleWithSourceMap;

beforeAll(async () => {
  workflowBundle = await bundleWorkflowCode({ workflowsPath: require.resolve('../../workflows/index') });
}, 60_000);

const History = temporal.api.history.v1.History;
const read = (name: string): temporal.api.history.v1.IHistory => History.decode(readFileSync(path.join(folder, name)));

test('there are histories of each kind of delivery', () => {
  expect(names).toEqual(
    expect.arrayContaining(['crowded.history', 'delivery.history', 'lost-builder.history', 'refused-update.history', 'superseded.history']),
  );
});

test.each(names)('%s replays', async (name) => {
  await expect(Worker.runReplayHistory({ workflowBundle }, read(name), 'module/recorded')).resolves.toBeUndefined();
});

test('a history that today’s workflow would not make is found out', async () => {
  const history = read('delivery.history');
  const builds = (history.events ?? [])
    .map((event) => event.activityTaskScheduledEventAttributes?.activityType)
    .filter((type) => type?.name === 'build');
  expect(builds).toHaveLength(1);
  for (const type of builds) if (type) type.name = 'judge';
  await expect(Worker.runReplayHistory({ workflowBundle }, history, 'module/recorded')).rejects.toThrow();
});
