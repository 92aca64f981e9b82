/**
 * What this host has done and has to say, on disk before it is done or said. One file of lines, replayed at start and
 * rewritten when most of it is past; a line that a kill cut off never counted. Written synchronously: an intent that is
 * not on the disk is no intent.
 */

import { randomBytes } from 'node:crypto';
import { closeSync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { NodeReport } from '../schema/messages';
import type { Entry } from './entry';
import { codeOf } from './root';

export interface Held {
  readonly sequence: number;
  readonly digest: string;
}

export type Line =
  | { readonly t: 'entry'; readonly entry: Entry }
  | { readonly t: 'gone'; readonly key: string }
  /** A directory that this host makes, or that is there no more. */
  | { readonly t: 'made' | 'unmade'; readonly path: string }
  | { readonly t: 'report'; readonly report: NodeReport }
  | { readonly t: 'sent'; readonly number: number }
  | { readonly t: 'applied'; readonly applied: Held };

interface Base {
  readonly t: 'base';
  readonly v: 1;
  readonly epoch: string;
  readonly change: number;
  readonly lastReport: number;
}

export interface Journal {
  /** Of this installation: reports are numbered within it. */
  readonly epoch: string;
  readonly entries: ReadonlyMap<string, Entry>;
  readonly made: ReadonlySet<string>;
  /** Not confirmed yet, oldest first. */
  readonly reports: ReadonlyMap<number, NodeReport>;
  readonly applied: Held | null;
  readonly lastReport: number;
  /** The highest number of an act. */
  readonly change: number;
  /** On the disk when this returns; throws what the disk says, and then nothing was written. */
  write(...lines: Line[]): void;
  /** As good as written, but not worth waiting for the disk. */
  note(...lines: Line[]): void;
  close(): void;
}

/** Reports that wait for a broker that is away; the oldest go first. */
const REPORTS_MOST = 200;
/** A journal this small is not worth rewriting. */
const SMALL_BYTES = 1 << 20;

export function openJournal(state: string): Journal {
  const path = join(state, 'journal.jsonl');
  const entries = new Map<string, Entry>();
  const made = new Set<string>();
  const reports = new Map<number, NodeReport>();
  let base: Base = { t: 'base', v: 1, epoch: randomBytes(10).toString('hex'), change: 0, lastReport: 0 };
  let applied: Held | null = null;
  let fd = -1;
  let bytes = 0;
  let rewriteAt = SMALL_BYTES;

  function take(line: Line): void {
    switch (line.t) {
      case 'entry':
        entries.set(line.entry.key, line.entry);
        if (line.entry.change > base.change) base = { ...base, change: line.entry.change };
        return;
      case 'gone':
        entries.delete(line.key);
        return;
      case 'made':
        made.add(line.path);
        return;
      case 'unmade':
        made.delete(line.path);
        return;
      case 'report':
        reports.set(line.report.number, line.report);
        if (line.report.number > base.lastReport) base = { ...base, lastReport: line.report.number };
        for (const number of [...reports.keys()].slice(0, Math.max(0, reports.size - REPORTS_MOST))) reports.delete(number);
        return;
      case 'sent':
        reports.delete(line.number);
        return;
      case 'applied':
        applied = line.applied;
        return;
    }
  }

  function replay(): void {
    const text = readIfThere(path);
    if (text === null) return;
    const lines = text.split('\n').map(parse);
    const [first] = lines;
    if (first?.t !== 'base') {
      // Whose things are whose is not known any more, so nothing is removed and a new epoch begins.
      renameSync(path, `${path}.unreadable`);
      return;
    }
    base = first;
    for (const line of lines.slice(1)) if (line !== null && line.t !== 'base') take(line);
  }

  /** All that still counts, in a new file that takes the place of the old one whole. */
  function rewrite(): void {
    const lines: Array<Line | Base> = [base];
    for (const entry of entries.values()) lines.push({ t: 'entry', entry });
    for (const directory of made) lines.push({ t: 'made', path: directory });
    for (const report of reports.values()) lines.push({ t: 'report', report });
    if (applied !== null) lines.push({ t: 'applied', applied });
    const content = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const temporary = `${path}.new`;
    const file = openSync(temporary, 'w', 0o600);
    try {
      writeAll(file, content);
      fsyncSync(file);
      renameSync(temporary, path);
    } catch (error) {
      closeSync(file);
      throw error;
    }
    if (fd !== -1) closeSync(fd);
    fd = file;
    bytes = Buffer.byteLength(content);
    rewriteAt = Math.max(SMALL_BYTES, bytes * 3);
    syncDirectory(dirname(path));
  }

  function append(lines: readonly Line[], isSynced: boolean): void {
    const content = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    try {
      writeAll(fd, content, bytes);
      if (isSynced) fdatasyncSync(fd);
    } catch (error) {
      ftruncateSync(fd, bytes);
      throw error;
    }
    bytes += Buffer.byteLength(content);
    for (const line of lines) take(line);
    if (bytes > rewriteAt) rewriteWhereItFits();
  }

  /** On a full disk the long journal is as good as the short one. */
  function rewriteWhereItFits(): void {
    try {
      rewrite();
    } catch {
      rewriteAt = bytes * 2;
    }
  }

  replay();
  const size = fd === -1 ? sizeOf(path) : 0;
  if (size === null || size > SMALL_BYTES) rewrite();
  else {
    fd = openSync(path, 'r+', 0o600);
    bytes = wholeBytes(path);
    ftruncateSync(fd, bytes);
  }

  return {
    epoch: base.epoch,
    entries,
    made,
    reports,
    get applied() {
      return applied;
    },
    get lastReport() {
      return base.lastReport;
    },
    get change() {
      return base.change;
    },
    write: (...lines) => append(lines, true),
    note: (...lines) => append(lines, false),
    close: () => closeSync(fd),
  };
}

/** At a place, so that whatever a failed write left is written over. */
function writeAll(fd: number, text: string, from = 0): void {
  const content = Buffer.from(text);
  let done = 0;
  while (done < content.length) done += writeSync(fd, content, done, content.length - done, from + done);
}

/** Up to the last line that is whole. */
function wholeBytes(path: string): number {
  return readFileSync(path).lastIndexOf(0x0a) + 1;
}

function sizeOf(path: string): number | null {
  const content = readIfThere(path);
  return content === null ? null : Buffer.byteLength(content);
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

function parse(text: string): Line | Base | null {
  try {
    return JSON.parse(text) as Line | Base;
  } catch {
    return null;
  }
}

export function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** For its owner alone. */
export function writeWhole(path: string, text: string): void {
  const file = openSync(`${path}.new`, 'w', 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
  syncDirectory(dirname(path));
}
