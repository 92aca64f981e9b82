/** What builds on what, and what would happen, as a person asks for it. */
import { apiOfFile } from '../support/api';
import { asking, type Ran, runTally } from '../support/command';
import { aGraph } from '../support/edges';
import { aDay } from '../support/meshes';

const api = apiOfFile();
const tally = (...words: string[]): Promise<Ran> => runTally(words, { env: asking(api) });

test('tally plan says what is next and because of what, and ends with 1 when there is anything', async () => {
  await aDay(api.db);
  const { status, out } = await tally('plan');
  expect(status).toBe(1);
  expect(out).toContain('meshboard');
  expect(out).toContain('because source moved to 4f2c1a9');
  await api.db.query('delete from module');
  await api.db.query('delete from node');
  expect(await tally('plan')).toMatchObject({ status: 0, out: 'nothing is to be done: source, built, declared and applied agree\n' });
});

describe('the graph', () => {
  test('is a tree with the place of each import, of one module in either direction', async () => {
    await aGraph(api.db);
    expect(await tally('graph')).toEqual({
      status: 0,
      err: '',
      out: [
        'kiosk',
        '└─ board-types  web/main.ts:1',
        '   └─ core  types.go:3',
        'meshboard',
        '├─ board-types  board/board.go:7 · (above)',
        '└─ core  main.go:12',
        'probe',
        '└─ core  probe_test.go:5 · tests only',
        'without edges: site',
        '',
      ].join('\n'),
    });
    expect((await tally('graph', 'kiosk')).out).toBe('kiosk\n└─ board-types  web/main.ts:1\n   └─ core  types.go:3\n');
    expect((await tally('graph', 'board-types', '--inbound')).out).toBe('board-types\n├─ kiosk  web/main.ts:1\n└─ meshboard  board/board.go:7\n');
    expect((await tally('graph', '--dot')).out).toMatch(
      /^digraph tally {\n[\s\S]*"probe" -> "core" \[label="probe_test.go:5", style=dashed\];\n}\n$/,
    );
  });

  test('of a module that is not there, and a plan for it, are one line and a 2', async () => {
    await aGraph(api.db);
    for (const words of [
      ['graph', 'meshbord'],
      ['plan', '--if', 'meshbord'],
    ]) {
      expect(await tally(...words)).toEqual({ status: 2, out: '', err: 'there is no module meshbord: did you mean meshboard?\n' });
    }
  });

  test('shows in module show with exports and evidence', async () => {
    await aGraph(api.db);
    const { out } = await tally('module', 'show', 'board-types');
    expect(out).toMatch(/^builds on\n {2}core {2}types.go:3 {2}example.com\/core$/m);
    expect(out).toMatch(/^built on by\n {2}kiosk {6}web\/main.ts:1 {5}example.com\/board-types$/m);
  });

  test('answers what a change would bring before it is made, with 1', async () => {
    await aGraph(api.db);
    const { status, out } = await tally('plan', '--if', 'board-types');
    expect([status, out.split('\n')[0]]).toEqual([1, '1  build  board-types           on no node']);
    expect(out).toContain('because kiosk ← board-types (web/main.ts:1); after board-types; may be cut\n');
    expect((await tally('plan')).status).toBe(0);
  });
});
