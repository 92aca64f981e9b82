/** `tally build --check` as a person types it, beside a control plane whose builder answers. */
import { apiOfFile } from '../support/api';
import { asking, type Ran, runTally } from '../support/command';
import { eventually } from '../support/eventually';
import { COMMITS, inStep } from '../support/meshes';

const api = apiOfFile();
const tally = (...words: string[]): Promise<Ran> => runTally(words, { env: asking(api) });

describe('tally build --check', () => {
  /** A build that was asked to be made twice, and answered so. */
  async function checked(differing: object): Promise<void> {
    await eventually(() =>
      expect(api.temporal.updates).toMatchObject([{ module: 'kiosk', verb: 'rebuild', ask: { check: true, why: 'build --check' } }]),
    );
    await api.db.query(
      `insert into request (id, kind, module, commit, closure, platform, body, state, answered_at)
       values ('build-2', 'build', 'kiosk', $1, 'c', 'linux-amd64', '{"check": true}', 'answered', now())`,
      [COMMITS.fit],
    );
    await api.db.query(
      `insert into build (id, module, commit, closure, verdict, answered_at, differing) values ('build-2', 'kiosk', $1, 'c', 'fit', now(), $2)`,
      [COMMITS.fit, JSON.stringify(differing)],
    );
  }

  test('waits for it and names the files that came out otherwise', async () => {
    await inStep(api.db, 'kiosk');
    const asking = tally('build', 'kiosk', '--check');
    await checked([{ artifact: 'kiosk', file: 'time' }]);
    expect(await asking).toMatchObject({ status: 1, out: `kiosk ${COMMITS.fit.slice(0, 7)} came out otherwise the second time:\n  kiosk  time\n` });
  });

  test('ends with 0 when nothing does', async () => {
    await inStep(api.db, 'kiosk');
    const asking = tally('build', 'kiosk', '--check', '--json');
    await checked([]);
    const { status, out } = await asking;
    expect([status, JSON.parse(out)]).toEqual([0, { module: 'kiosk', build: 'build-2', commit: COMMITS.fit, verdict: 'fit', differing: [] }]);
  });
});
