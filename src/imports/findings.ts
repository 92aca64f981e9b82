import type { ExportedName, ImportedName, Language, UnknownImport } from '../schema/messages';
import type { DeclaredName, LanguageFindings } from './types';

/** What the readers found, as it goes out: each name once, in an order that only the code decides, and not beyond what a message holds. */

export interface Limits {
  /** Names, of exports and of imports each. */
  readonly names: number;
  readonly unknown: number;
  readonly notes: number;
  /** Of each of the lists, as it is sent: with the manifest they are one message, and brokers take 16 MiB. */
  readonly bytes: number;
}

/** As the schema of an answer has it. */
export const limits: Limits = { names: 20_000, unknown: 1_000, notes: 200, bytes: 4 << 20 };

const NAME_MOST = 512;
const CANDIDATES_MOST = 64;
const REASON_MOST = 500;

export interface Graph {
  exports: ExportedName[];
  imports: ImportedName[];
  unknown: UnknownImport[];
  notes: string[];
}

type ByLanguage = ReadonlyMap<Language, LanguageFindings>;

/** What a store keeps as a name: nothing that no package is called. */
function isName(name: string): boolean {
  return name !== '' && name.length <= NAME_MOST && !/\p{Cc}|\p{Cs}/u.test(name);
}

export function declaredNames(found: ByLanguage): Map<Language, DeclaredName[]> {
  return new Map([...found].map(([language, { declared }]) => [language, declared.filter(({ name }) => isName(name)).sort(byPlace)]));
}

export function assembled(found: ByLanguage, bound: { exports: ExportedName[]; notes: string[] }, most: Limits = limits): Graph {
  const all = everyImport(found);
  const imports = withinLimits(all, most.names, most.bytes);
  const exports = withinLimits(bound.exports, most.names, most.bytes);
  const unknown = [...found.values()].flatMap((one) => one.unknown).sort((a, b) => rank(a) - rank(b) || byPlace(a, b));
  const notes = [...bound.notes, ...[...found.values()].flatMap((one) => one.notes)];
  for (const [verb, kept, of] of [
    ['imports', imports.length, all.length],
    ['exports', exports.length, bound.exports.length],
  ] as const) {
    if (kept === of) continue;
    const reason = `the code ${verb} ${of} names, more than an inspection can say: the first ${kept} are looked at`;
    unknown.unshift({ kind: 'unparsed', file: '.', line: 0, reason });
    notes.unshift(reason);
  }
  notes.push(...unknown.filter(({ kind }) => kind === 'computed').map(({ file, line, reason }) => `${file}:${line} ${reason}`));
  return {
    exports,
    imports,
    unknown: withinLimits(
      unknown.map((one) => ({ ...one, reason: inOneLine(one.reason) })),
      most.unknown,
      most.bytes,
    ),
    notes: shortened([...new Set(notes.map(inOneLine))], most.notes),
  };
}

function everyImport(found: ByLanguage): ImportedName[] {
  const first = new Map<string, ImportedName>();
  for (const [language, { imports }] of found) {
    for (const one of imports) {
      const candidates = one.candidates.filter(isName).slice(0, CANDIDATES_MOST);
      if (!isName(one.name) || candidates.length === 0) continue;
      const { name, test, file, line } = one;
      const key = `${language} ${test} ${name}`;
      const earlier = first.get(key);
      if (earlier === undefined || byPlace({ file, line }, earlier) < 0) first.set(key, { language, name, candidates, test, file, line });
    }
  }
  return [...first.values()].sort(
    (a, b) => compare(a.language, b.language) || compare(a.name, b.name) || Number(a.test) - Number(b.test) || byPlace(a, b),
  );
}

/** The first of them that fit. */
function withinLimits<T>(list: T[], most: number, mostBytes: number): T[] {
  let bytes = 0;
  const at = list.findIndex((one, n) => {
    bytes += Buffer.byteLength(JSON.stringify(one)) + 1;
    return n >= most || bytes > mostBytes;
  });
  return at === -1 ? list : list.slice(0, at);
}

/** `unparsed` decides over edges, so it goes first. */
function rank({ kind }: UnknownImport): number {
  return kind === 'unparsed' ? 0 : 1;
}

function byPlace(a: { file: string; line: number }, b: { file: string; line: number }): number {
  return compare(a.file, b.file) || a.line - b.line;
}

/** By code points and not by a language's order: the same on each builder. */
function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function inOneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cs}]+/gu, ' ')
    .slice(0, REASON_MOST)
    .replace(/[\uD800-\uDBFF]$/, '')
    .trim();
}

function shortened(notes: string[], most: number): string[] {
  return notes.length <= most ? notes : [...notes.slice(0, most - 1), `and ${notes.length - most + 1} notes more`];
}
