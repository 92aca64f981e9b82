import { createBatches } from '../../src/control/batches';
import { createLimit, forEachLimited } from '../../src/control/limit';
import { startLoop } from '../../src/control/loop';
import { EnvironmentError } from '../../src/domain/errors';
import { createLog } from '../../src/log';
import { eventually } from '../support/eventually';

describe('batches', () => {
  it('store many small things at once, and one alone without much waiting', async () => {
    const stored: number[][] = [];
    const batches = createBatches<number, number>({
      most: 10,
      afterMs: 20,
      store: async (items) => {
        stored.push([...items]);
        return items.map((item) => item * 2);
      },
    });
    expect(await Promise.all(Array.from({ length: 25 }, (_, i) => batches.add(i)))).toEqual(Array.from({ length: 25 }, (_, i) => i * 2));
    expect(stored.map((batch) => batch.length)).toEqual([10, 10, 5]);
    expect(await batches.add(7)).toBe(14);
  });

  it('let what cannot be stored take no other with it', async () => {
    const batches = createBatches<number, null>({
      most: 10,
      afterMs: 5,
      store: async (items) => {
        if (items.includes(3)) throw new TypeError('3 cannot be stored');
        return items.map(() => null);
      },
    });
    const results = await Promise.allSettled([1, 2, 3, 4].map((item) => batches.add(item)));
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  });

  it('fail whole when the store is away', async () => {
    let calls = 0;
    const batches = createBatches<number, null>({
      most: 10,
      afterMs: 5,
      store: async () => {
        calls += 1;
        throw new EnvironmentError('away');
      },
    });
    const results = await Promise.allSettled([1, 2, 3].map((item) => batches.add(item)));
    expect(results.every((result) => result.status === 'rejected')).toBe(true);
    expect(calls).toBe(1);
  });
});

describe('a limit', () => {
  it('is kept to, in the order of coming, also when work fails', async () => {
    const limit = createLimit(2);
    const order: number[] = [];
    let busy = 0;
    let most = 0;
    await Promise.allSettled(
      [1, 2, 3, 4, 5].map((n) =>
        limit.run(async () => {
          busy += 1;
          most = Math.max(most, busy);
          order.push(n);
          await new Promise((resolve) => setImmediate(resolve));
          busy -= 1;
          if (n % 2 === 0) throw new Error('even');
        }),
      ),
    );
    expect(order).toEqual([1, 2, 3, 4, 5]);
    expect(most).toBe(2);
    await forEachLimited([1, 2], 1, async () => {
      throw new Error('each');
    });
    expect(await limit.run(async () => 'free again')).toBe('free again');
  });
});

describe('a loop', () => {
  it('goes on after a pass that failed, can be woken, and ends what it is at when it is stopped', async () => {
    let passes = 0;
    let ended = 0;
    const loop = startLoop({
      name: 'test',
      log: createLog('test', 'silent'),
      pauseMs: () => 60_000,
      pass: async () => {
        passes += 1;
        if (passes === 1) throw new Error('the first pass fails');
        await new Promise((resolve) => setTimeout(resolve, 20));
        ended += 1;
        return 0;
      },
    });
    await eventually(() => ended === 1);
    loop.wake();
    await eventually(() => passes === 3);
    await loop.stop();
    expect(ended).toBe(2);
    expect(passes).toBe(3);
  });
});
