import fc from 'fast-check';
import { machine } from './machine';
import { expectedTree, plantForeign, resourcesOf, seenTree, TARGETS } from './model';

const choice = fc.record({ target: fc.constantFrom(...TARGETS), version: fc.constantFrom(0, 1), module: fc.constantFrom('m', 'n') });
const step = fc.record({ choices: fc.array(choice, { maxLength: 8 }), isRestarted: fc.boolean() });

/** Invariant 6, for whatever is declared one after the other. */
test('after any sequence of declarations the root is as the last one says, what others had is back, and nothing else is left', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
      const m = machine();
      try {
        plantForeign(m);
        const foreign = seenTree(m);
        const packs = [await m.archive({ run: 'v0', 'lib/x': 'x' }), await m.archive({ run: 'v1' })];
        for (const { choices, isRestarted } of steps) {
          if (isRestarted) m.restart();
          const resources = resourcesOf(choices, packs);
          const pass = await m.apply(resources);
          expect(pass.modules.flatMap(({ failures }) => failures)).toEqual([]);
          expect(seenTree(m)).toEqual(expectedTree(foreign, resources));
          expect((await m.apply(resources)).hasChanged).toBe(false);
        }
        await m.apply([]);
        expect(m.tree()).toEqual(foreign);
      } finally {
        await m.remove();
      }
    }),
    { numRuns: 25, endOnFailure: true, interruptAfterTimeLimit: 40_000 },
  );
}, 60_000);
