import fc from 'fast-check';
import { foldLate, foldReport, foldReports, type Outcome, type Run } from '../../src/domain/stuck';

const at = (number: number): string => new Date(Date.UTC(2026, 10, 29, 14, 0, number)).toISOString();
const outcome = (number: number, ...resources: string[]): Outcome => ({
  number,
  at: at(number),
  failures: resources.map((resource) => ({ resource, message: `words ${number}` })),
});

describe('the run of reports that fail the same way', () => {
  it('counts reports that failed on exactly the same resources, whatever the words', () => {
    expect(foldReports(null, [outcome(1, 'service/b', 'file/a'), outcome(2, 'file/a', 'service/b'), outcome(3, 'service/b', 'file/a')])).toEqual({
      resources: ['file/a', 'service/b'],
      count: 3,
      since: at(1),
      message: 'words 3',
    });
  });

  it('begins anew with another set, and is over after a clean apply', () => {
    expect(foldReports(null, [outcome(1, 'a'), outcome(2, 'a'), outcome(3, 'a', 'b')])).toMatchObject({ count: 1, since: at(3) });
    expect(foldReports(null, [outcome(1, 'a'), outcome(2)])).toBeNull();
  });

  it('puts a late report in its place, also where the run is longer than what is kept', () => {
    const long = foldReports(
      null,
      [1, 2, 3, 4, 5, 7].map((n) => outcome(n, 'a')),
    );
    expect(foldLate(long, [outcome(5, 'a'), outcome(7, 'a')], [outcome(6, 'a')])).toMatchObject({ count: 7, since: at(1) });
    expect(foldLate(long, [outcome(5, 'a'), outcome(7, 'a')], [outcome(6)])).toMatchObject({ count: 1, since: at(7) });
  });

  const outcomes = fc
    .array(fc.subarray(['file/a', 'service/b'], { minLength: 0 }), { minLength: 1, maxLength: 20 })
    .map((sets) => sets.map((set, i) => outcome(i + 1, ...set)));
  const delivered = outcomes.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray([...all, ...all], { minLength: all.length * 2 })));

  it('is the same for any order and any number of deliveries', () => {
    fc.assert(fc.property(delivered, ([all, order]) => expect(foldReports(null, order)).toEqual(foldReports(null, all))));
  });

  it('is the same when reports are taken in one by one, late ones among those that are kept', () => {
    fc.assert(
      fc.property(delivered, ([all, order]) => {
        // As the inventory does: the newest is folded on, a late one is put in its place, one that is known is dropped.
        let run: Run | null = null;
        const kept: Outcome[] = [];
        for (const one of order) {
          if (kept.some((known) => known.number === one.number)) continue;
          const last = Math.max(0, ...kept.map((known) => known.number));
          run = one.number > last ? foldReport(run, one) : foldLate(run, kept, [one]);
          kept.push(one);
        }
        expect(run).toEqual(foldReports(null, all));
      }),
    );
  });
});
