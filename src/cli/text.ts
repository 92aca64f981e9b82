/** Text that fits the terminal. Whatever comes from modules and machines loses its control characters before it is shown. */
import { createColors } from 'picocolors';
import { minuteOf, renderTimes } from '../domain/times';

export const colours = createColors(process.stdout.isTTY === true && (process.env.NO_COLOR ?? '') === '' && process.env.TERM !== 'dumb');

/** Letters, digits and the signs of our own lines: a column each. Only other text needs the tables, which take long to load. */
const NARROW = /^[\u0020-\u007e\u00a1-\u00ac\u00ae-\u02ff\u2018-\u2026←→\u2500-\u257f]*$/;

/** How many columns a terminal gives to it. */
function widthOf(text: string): number {
  if (NARROW.test(text)) return text.length;
  const { default: stringWidth } = require('string-width') as typeof import('string-width');
  return stringWidth(text);
}

const PIPE_WIDTH = 80;
const LEAST_WIDTH = 40;

export function terminalWidth(): number {
  return process.stdout.isTTY ? Math.max(LEAST_WIDTH, process.stdout.columns ?? PIPE_WIDTH) : PIPE_WIDTH;
}

/** One line without control characters, with its times as this place's clock shows them. */
export function plain(text: string): string {
  return renderTimes(text.replace(/\p{Cc}+/gu, ' '), Date.now(), -new Date().getTimezoneOffset());
}

export function clock(iso: string): string {
  return plain(minuteOf(iso));
}

/** 40 s, 12 min, 3 h, 5 d: one unit is enough for a glance. */
export function lasted(sinceIso: string, nowIso: string): string {
  const seconds = Math.max(0, Math.round((Date.parse(nowIso) - Date.parse(sinceIso)) / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const wide = widthOf(segment);
    if (used + wide > width - 1) break;
    kept += segment;
    used += wide;
  }
  return `${kept.trimEnd()}…`;
}

const PART = ' · ';
/** A part that is shortened to less than this says nothing any more. */
const LEAST_PART = 14;

/** Shortens the longest part first, so that each of the facts is still named; only then the end goes. */
export function fitted(line: string, width: number): string {
  const parts = plain(line).split(PART);
  // Each turn shortens one part for good, so there are at most as many turns as parts.
  for (let turn = 0; turn < parts.length; turn += 1) {
    const excess = widthOf(parts.join(PART)) - width;
    if (excess <= 0) break;
    const widths = parts.map(widthOf);
    const longest = widths.indexOf(Math.max(...widths));
    const wide = widths[longest] ?? 0;
    if (wide <= LEAST_PART) break;
    parts[longest] = cut(parts[longest] ?? '', Math.max(LEAST_PART, wide - excess));
  }
  return cut(parts.join(PART), width);
}

/** On as few lines as hold it, broken between its parts; the last of `most` lines is shortened to fit. */
export function laid(line: string, width: number, most: number): string[] {
  const parts = plain(line).split(PART);
  const lines: string[] = [];
  let current = '';
  for (const part of parts) {
    const longer = current === '' ? part : `${current}${PART}${part}`;
    if (current === '' || widthOf(longer) <= width || lines.length === most - 1) {
      current = longer;
      continue;
    }
    lines.push(current);
    current = part;
  }
  return [...lines, current].map((one) => fitted(one, width));
}

/** Lines of at most `width`, broken between words. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of plain(text).split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (widthOf(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = word;
  }
  return [...lines, line].map((one) => cut(one, width));
}

/** Columns as wide as their widest cell; the last one takes what is left. */
export function table(rows: readonly (readonly string[])[], width: number, indent = 0): string[] {
  const cells = rows.map((row) => row.map(plain));
  const columns = Math.max(0, ...cells.map((row) => row.length));
  const widths = Array.from({ length: columns - 1 }, (_, at) => Math.min(28, Math.max(0, ...cells.map((row) => widthOf(row[at] ?? '')))));
  return cells.map((row) => {
    const line = row.map((cell, at) => (at < columns - 1 ? padded(cut(cell, widths[at] ?? 0), widths[at] ?? 0) : cell)).join('  ');
    return `${' '.repeat(indent)}${cut(line, width - indent)}`.trimEnd();
  });
}

/** Where what is said last in a row gets less than this, it stands below the row. */
const LEAST_SAID = 24;

/** Columns that are never cut, since verbs take their names; what is said last is laid beside them, or below where too little is left. */
export function listed(rows: readonly (readonly string[])[], width: number, indent = 0): string[] {
  const heads = rows.map((row) => row.slice(0, -1).map(plain));
  const columns = Math.max(0, ...heads.map((head) => head.length));
  const widths = Array.from({ length: columns }, (_, at) => Math.max(0, ...heads.map((head) => widthOf(head[at] ?? ''))));
  const wide = indent + widths.reduce((sum, one) => sum + one + 2, 0);
  return rows.flatMap((row, at) => {
    const head = `${' '.repeat(indent)}${heads[at]?.map((cell, i) => padded(cell, widths[i] ?? 0)).join('  ') ?? ''}`;
    const isBelow = width - wide < LEAST_SAID;
    const left = isBelow ? indent + 2 : wide;
    const said = laid(row.at(-1) ?? '', width - left, 3).flatMap((one) => (one === '' ? [] : [one]));
    const below = said.map((one) => `${' '.repeat(left)}${one}`);
    if (isBelow) return [cut(head.trimEnd(), width), ...below];
    return [`${head}  ${said[0] ?? ''}`.trimEnd(), ...below.slice(1)];
  });
}
