import { eventually } from '../support/eventually';
import { graph, placement } from '../support/facts';
import { env, withModule } from '../support/moduleRuns';

// Apart from the other workflow tests: the server does not skip time while an activity is pending in it.
describe('a module in time', () => {
  test(
    'with nothing to do it sleeps, and looks again by itself within hours',
    () =>
      withModule(async ({ world, until, look }) => {
        await until((w) => w.looks === 1);
        await env.sleep('9 hours');
        await until((w) => w.looks >= 2);
        expect(world.looks).toBeLessThan(6);
        expect(await look()).toMatchObject({ situation: 'in step' });
      }),
    60_000,
  );

  test(
    'an outstanding node is looked at again when its hour is due',
    () =>
      withModule(async ({ world, nudge, look, until }) => {
        const failing = {
          resources: ['service/greeter'],
          count: 1,
          since: new Date(await env.currentTimeMs()).toISOString(),
          message: 'exit status 203',
        };
        world.change({ placements: [placement('gamma', { isApplied: false, outstandingSince: failing.since, failing, awaySince: failing.since })] });
        await nudge();
        await eventually(async () => expect((await look())?.next).toBe('track'));
        const before = world.looks;
        // No longer than that: the facts' clock stands still meanwhile, so from then on it is due at every look.
        await env.sleep('61 minutes');
        await until((w) => w.looks > before);
      }),
    60_000,
  );

  test(
    'what waits for an input takes no turn while nothing moves, looks again when patience is over, and goes on',
    () =>
      withModule(async ({ world, handle, nudge, look, until }) => {
        // The server's clock, which skips time, is ahead of the one that facts are compared at.
        const now = new Date(await env.currentTimeMs()).toISOString();
        const waits = (progressAt: string): void => {
          const core = { module: 'core', state: 'building' as const, takenBy: 'builder-1', since: now, path: [world.facts.module, 'core'] };
          world.change({ closure: 'closure-a2', headBuild: null, graph: graph({ staleSince: now, settling: [{ ...core, progressAt }] }) });
        };
        waits(now);
        await nudge();
        await eventually(async () => expect(await look()).toMatchObject({ next: 'wait', situation: 'waiting', about: 'core to settle' }));
        await eventually(async () => {
          const { events } = await handle.fetchHistory();
          const summary = events?.findLast((event) => event.timerStartedEventAttributes)?.userMetadata?.summary?.data;
          expect(Buffer.from(summary ?? []).toString()).toBe('"wait for core to settle"');
        });
        const { looks } = world;
        await env.sleep('14 minutes');
        expect(world.looks).toBe(looks);
        // Nobody says so: the timer alone finds that it has made no progress.
        waits(new Date(Date.now() - 16 * 60_000).toISOString());
        // No longer than that: the server skips no time while the build is asked for.
        await env.sleep('61 seconds');
        await until(() => world.open()?.kind === 'build');
      }),
    60_000,
  );
});
