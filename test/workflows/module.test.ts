import { ActivityNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { Ask } from '../../workflows/shared';
import { eventually } from '../support/eventually';
import { B } from '../support/facts';
import { ask, env, isAsked, openId, withModule } from '../support/moduleRuns';

const C = 'c'.repeat(40);

describe('a module', () => {
  test.each([[50], [0]])('a new head is inspected, built, declared, tracked and ends its run in step (%i workflows cached)', (cached) =>
    withModule(
      async ({ world, handle, nudge, answer, until, look }) => {
        await until((w) => w.looks > 0);
        const first = (await handle.describe()).runId;
        world.move(B);
        await nudge();
        await until(isAsked('inspect'));
        await answer(openId(world, 'inspect'));
        await until(isAsked('build'));
        await answer(openId(world, 'build'));
        await until((w) => w.declared.includes('build-b'));
        await eventually(async () => expect((await look())?.next).toBe('track'), { timeoutMs: 10_000 });
        world.apply('alpha');
        world.apply('beta');
        await nudge();
        await eventually(async () => expect((await handle.describe()).runId).not.toBe(first), { timeoutMs: 10_000 });
        expect(await look()).toMatchObject({ next: 'nothing', situation: 'in step' });
        const { memo, typedSearchAttributes } = await handle.describe();
        expect(String(memo?.line)).toContain('applied on 2');
        expect(JSON.stringify(typedSearchAttributes)).toContain('in step');
        expect(await handle.query('line')).toContain('source bbbbbbb · built from bbbbbbb · fit · declared on 2 · applied on 2');
        expect(world.declared).toEqual(['build-b']);
      },
      { cached, ...(cached > 0 ? { record: 'delivery' } : {}) },
    ),
  );

  test('what is shown in the UI is the result line, the situation and the links', () =>
    withModule(async ({ world, handle, nudge, until }) => {
      world.move(B);
      await nudge();
      await until(isAsked('inspect'));
      await eventually(
        async () => {
          const { memo, typedSearchAttributes } = await handle.describe();
          expect(memo).toMatchObject({ repository: 'file:///m.git', board: 'http://board' });
          expect(String(memo?.line)).toContain('source bbbbbbb · inspecting waits for a builder');
          expect(JSON.stringify(typedSearchAttributes)).toContain('waiting');
        },
        { timeoutMs: 10_000 },
      );
      const details = await handle.query<{ currentDetails?: string } & Record<string, unknown>>('__temporal_workflow_metadata');
      expect(JSON.stringify(details)).toContain('source bbbbbbb');
    }));

  test(
    '500 nudges at once are few looks',
    () =>
      withModule(async ({ world, nudge, until, handle }) => {
        await until((w) => w.looks > 0);
        const before = world.looks;
        await Promise.all(Array.from({ length: 500 }, () => nudge()));
        await eventually(async () => expect(await handle.query('comparison')).toMatchObject({ situation: 'in step' }), { timeoutMs: 20_000 });
        expect(world.looks).toBeGreaterThan(before);
        expect(world.looks - before).toBeLessThan(250);
      }),
    60_000,
  );

  test('a run that follows a delivery looks again when the nudge is there before it', () =>
    withModule(async ({ until }) => await until((w) => w.looks > 0), {
      resumed: {
        ...{ next: 'nothing', about: null, requestId: null, buildId: null, cancel: [], line: 'as it was', reason: 'all agree', situation: 'in step' },
        ...{ verdict: 'fit', since: null, until: null, outstanding: 0, placements: 2, isStuck: false, atRest: true },
      },
    }));

  test('a duplicate answer finds no activity and changes nothing', () =>
    withModule(async ({ world, nudge, answer, until }) => {
      world.move(B);
      await nudge();
      await until(isAsked('inspect'));
      const id = openId(world, 'inspect');
      await answer(id);
      await until(isAsked('build'));
      await expect(answer(id)).rejects.toBeInstanceOf(ActivityNotFoundError);
      expect(world.facts.requests).toHaveLength(1);
    }));

  test('an answer of an older head that comes late declares nothing of it', () =>
    withModule(async ({ world, nudge, answer, until }) => {
      world.move(B);
      await nudge();
      await until(isAsked('inspect'));
      await answer(openId(world, 'inspect'));
      await until(isAsked('build'));
      const late = openId(world, 'build');
      world.change({ requests: world.facts.requests.map((one) => ({ ...one, state: 'taken' as const, takenBy: 'builder-1' })) });
      world.move(C);
      await nudge();
      await until((w) => w.asked.some((id) => id.startsWith('inspect-c')));
      await answer(late);
      await answer(openId(world, 'inspect'));
      await until((w) => w.asked.some((id) => id.startsWith('build-c')));
      await answer(openId(world, 'build'));
      await until((w) => w.declared.length > 0);
      expect(world.declared).toEqual(['build-c']);
    }));

  test('a newer head cancels a build that has not started', () =>
    withModule(
      async ({ world, nudge, answer, until }) => {
        world.move(B);
        await nudge();
        await until(isAsked('inspect'));
        await answer(openId(world, 'inspect'));
        await until(isAsked('build'));
        const old = openId(world, 'build');
        world.move(C);
        await nudge();
        await until((w) => w.cancelled.includes(old));
        await until((w) => w.asked.some((id) => id.startsWith('inspect-c')));
      },
      { record: 'superseded' },
    ));

  test('a lost builder is asked again under the same id and is never failed', () =>
    withModule(
      async ({ world, nudge, answer, until, handle }) => {
        world.move(B);
        await nudge();
        await until(isAsked('inspect'));
        await answer(openId(world, 'inspect'));
        await until(isAsked('build'));
        const id = openId(world, 'build');
        const failure = ApplicationFailure.create({
          message: 'the builder was lost',
          type: 'Environment',
          nonRetryable: false,
          nextRetryDelay: 1_000,
        });
        await env.client.activity.fail({ workflowId: handle.workflowId, activityId: id }, failure);
        await until((w) => w.asked.filter((one) => one === id).length === 2);
        expect(world.compare().verdict).toBe('outstanding');
        await answer(id);
        await until((w) => w.declared.includes('build-b'));
      },
      { record: 'lost-builder' },
    ));

  test(
    'an update during continue-as-new is carried out once',
    () =>
      withModule(async ({ world, nudge, until, handle }) => {
        await until((w) => w.looks > 0);
        const asks = Array.from({ length: 40 }, (_, n) => ask({ id: `during-${n}` }));
        // Each of these ends the run, so most updates meet a run that is ending.
        const answers = await Promise.all(
          asks.map(async (one, n) => {
            await nudge();
            return handle.executeUpdate<string, [Ask]>(n % 2 === 0 ? 'hold' : 'release', { args: [one], updateId: one.id });
          }),
        );
        expect(answers).toHaveLength(40);
        expect(world.intents.map((one) => one.ask.id).sort()).toEqual(asks.map((one) => one.id).sort());
      }),
    60_000,
  );

  test('an update without a reason is refused before it enters history', () =>
    withModule(async ({ world, until, handle }) => {
      await until((w) => w.looks > 0);
      await expect(handle.executeUpdate('hold', { args: [ask({ why: ' ' })] })).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
      await expect(handle.executeUpdate('rollback', { args: [ask()] })).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
      expect(world.intents).toEqual([]);
    }));

  test('a refusal by the store is the update’s answer, and the workflow lives on', () =>
    withModule(
      async ({ until, handle, look }) => {
        await until((w) => w.looks > 0);
        const refused = handle.executeUpdate('declare', { args: [ask({ why: 'refuse me' })] });
        await expect(refused).rejects.toMatchObject({ cause: { message: 'there is no such build' } });
        expect(await look()).toMatchObject({ situation: 'in step' });
      },
      { record: 'refused-update' },
    ));

  test(
    '2,000 signals in one run lead to a new run that goes on with what was in flight',
    () =>
      withModule(
        async ({ world, nudge, answer, until, handle }) => {
          world.move(B);
          await nudge();
          await until(isAsked('inspect'));
          const id = openId(world, 'inspect');
          const first = (await handle.describe()).runId;
          for (let round = 0; round < 21; round += 1) await Promise.all(Array.from({ length: 100 }, () => nudge()));
          await eventually(async () => expect((await handle.describe()).runId).not.toBe(first), { timeoutMs: 30_000 });
          await until((w) => w.asked.filter((one) => one === id).length >= 2);
          await answer(id);
          await until(isAsked('build'));
        },
        { record: 'crowded' },
      ),
    120_000,
  );

  test('a module that is removed ends its workflow', () =>
    withModule(async ({ world, nudge, until, handle }) => {
      await until((w) => w.looks > 0);
      world.isRemoved = true;
      await nudge();
      await expect(handle.result()).resolves.toBeUndefined();
    }));
});
