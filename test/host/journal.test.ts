import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Entry } from '../../src/host/entry';
import { type Journal, openJournal } from '../../src/host/journal';
import type { NodeReport } from '../../src/schema/messages';

let state: string;
const open: Journal[] = [];

beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'tally-journal-'));
});
afterEach(() => {
  for (const journal of open.splice(0)) journal.close();
  rmSync(state, { recursive: true, force: true });
});

function journal(): Journal {
  const opened = openJournal(state);
  open.push(opened);
  return opened;
}

const path = (): string => join(state, 'journal.jsonl');

function entry(key: string, change: number, size = 1): Entry {
  return { key, shape: 'file', module: 'm', id: key, order: 0, change, held: null, isPending: true, memo: { path: 'x'.repeat(size) } };
}

function report(number: number): NodeReport {
  return {
    v: 1,
    type: 'report',
    node: 'alpha',
    epoch: 'e',
    number,
    at: new Date().toISOString(),
    declaration: null,
    modules: [],
    removed: [],
    refused: null,
  };
}

test('what was written is there for the next one, what is past is not', () => {
  const first = journal();
  first.write({ t: 'entry', entry: entry('a', 1) }, { t: 'entry', entry: entry('b', 2) }, { t: 'made', path: '/d' });
  first.write({ t: 'report', report: report(1) }, { t: 'report', report: report(2) });
  first.note({ t: 'gone', key: 'a' }, { t: 'sent', number: 1 }, { t: 'applied', applied: { sequence: 3, digest: 'd' } });
  const next = journal();
  expect([...next.entries.keys()]).toEqual(['b']);
  expect([...next.made]).toEqual(['/d']);
  expect([...next.reports.keys()]).toEqual([2]);
  expect([next.epoch, next.change, next.lastReport, next.applied]).toEqual([first.epoch, 2, 2, { sequence: 3, digest: 'd' }]);
});

test('a line that a kill cut off, wherever, never counted; what is written next does', () => {
  journal().write({ t: 'entry', entry: entry('a', 1) });
  const whole = statSync(path()).size;
  journal().write({ t: 'entry', entry: entry('b', 2) });
  const content = readFileSync(path());
  for (let cut = whole + 1; cut < content.length; cut += 7) {
    writeFileSync(path(), content);
    truncateSync(path(), cut);
    const after = journal();
    expect([...after.entries.keys()]).toEqual(['a']);
    after.write({ t: 'entry', entry: entry('c', 3) });
    expect([...journal().entries.keys()]).toEqual(['a', 'c']);
  }
});

test('numbers of reports and acts go on after all that they were of is gone', () => {
  const first = journal();
  first.write({ t: 'report', report: report(7) }, { t: 'entry', entry: entry('a', 9) });
  first.write({ t: 'sent', number: 7 }, { t: 'gone', key: 'a' });
  for (let i = 0; i < 40; i++) first.note({ t: 'entry', entry: entry('big', 9, 64 << 10) }, { t: 'gone', key: 'big' });
  expect(readFileSync(path(), 'utf8')).not.toContain('"number":7');
  expect([journal().lastReport, journal().change]).toEqual([7, 9]);
});

test('it stays small however much passes through it, and reports that wait are bounded, the oldest gone', () => {
  const one = journal();
  for (let i = 1; i <= 3_000; i++) one.note({ t: 'entry', entry: entry('a', i, 2_000) }, { t: 'report', report: report(i) });
  expect(statSync(path()).size).toBeLessThan(2 << 20);
  expect([...one.reports.keys()]).toEqual(Array.from({ length: 200 }, (_, i) => 2_801 + i));
  expect([...journal().reports.keys()]).toEqual([...one.reports.keys()]);
});

test('one that cannot be read is put aside, and a new epoch begins', () => {
  const { epoch } = journal();
  writeFileSync(path(), 'not a journal\n');
  appendFileSync(path(), 'at all\n');
  expect(journal().epoch).not.toBe(epoch);
  expect(readFileSync(`${path()}.unreadable`, 'utf8')).toContain('at all');
});
