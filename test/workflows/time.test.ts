import { eventually } from '../support/eventually';
import { placement } from '../support/facts';
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
});
