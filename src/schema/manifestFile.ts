import type { Document } from 'yaml';
import { isAlias, isMap, isNode, isPair, isScalar, isSeq, Lexer, LineCounter, parseDocument, visit } from 'yaml';
import type { Manifest } from './manifest';
import { manifest } from './manifest';
import { explainIssues } from './manifestIssues';
import { checkMeaning, notesOf } from './manifestMeaning';
import type { Problem } from './messages';

/**
 * Reads the text of a `module.yaml`: form, then schema, then meaning. Whatever is wrong is a problem with file, line and key,
 * never an exception, for the text was written by anyone.
 */

export const MANIFEST_FILE = 'module.yaml';
export const MANIFEST_MAX_BYTES = 128 * 1024;

export type ManifestReading =
  /** `written` is what its author wrote, before defaults and units; it holds nothing that JSON or PostgreSQL cannot. */
  { valid: true; manifest: Manifest; written: Record<string, unknown>; notes: string[] } | { valid: false; problems: Problem[] };

const PROBLEMS_MAX = 20;
// The parser is recursive: beyond some hundred levels it exhausts the stack, beyond some thousand the process.
const DEPTH_MAX = 60;
// It compares each key with all before it.
const KEYS_MAX = 2_000;
const TOKENS_MAX = 60_000;

export function parseManifest(content: Buffer | string, expected?: { module: string }): ManifestReading {
  const text = decode(content);
  if (typeof text !== 'string') return refuse(text);
  const hostile = findHostileForm(text);
  if (hostile !== null) return refuse(hostile);

  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
  const formal = findFormalProblems(document, lines);
  if (formal.length > 0) return { valid: false, problems: formal.slice(0, PROBLEMS_MAX) };

  const written = document.toJS({ maxAliasCount: 0 }) as Record<string, unknown>;
  const parsed = manifest.safeParse(written);
  const findings = parsed.success ? checkMeaning(parsed.data, expected?.module) : explainIssues(parsed.error, written);
  if (!parsed.success || findings.length > 0) {
    const problems = findings.slice(0, PROBLEMS_MAX).map(({ path, message }) => problem(lineOf(document, lines, path), keyOf(path), message));
    return { valid: false, problems };
  }
  return { valid: true, manifest: parsed.data, written, notes: notesOf(parsed.data) };
}

function problem(line: number, key: string, message: string): Problem {
  return { file: MANIFEST_FILE, line, key, message };
}

function refuse(only: { line: number; message: string }): ManifestReading {
  return { valid: false, problems: [problem(only.line, '', only.message)] };
}

function decode(content: Buffer | string): string | { line: number; message: string } {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  if (bytes.length > MANIFEST_MAX_BYTES) {
    return { line: 1, message: `the file has ${bytes.length} bytes: at most ${MANIFEST_MAX_BYTES} are read` };
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { line: 1, message: 'the file is not UTF-8 text' };
  }
}

/** Counts tokens without building anything, so that what would exhaust the parser never reaches it. */
function findHostileForm(text: string): { line: number; message: string } | null {
  let line = 1;
  let flow = 0;
  let compact = 0;
  let keys = 0;
  let tokens = 0;
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') flow++;
    else if (token === ']' || token === '}') flow--;
    else if (token === '-' || token === '?') compact++;
    else if (token === ':') keys++;
    if (token.includes('\n')) {
      line += token.split('\n').length - 1;
      compact = 0;
    }
    if (flow > DEPTH_MAX || compact > DEPTH_MAX) return { line, message: `the file nests deeper than ${DEPTH_MAX} levels` };
    if (keys > KEYS_MAX || ++tokens > TOKENS_MAX) return { line, message: `the file has more than ${KEYS_MAX} keys` };
  }
  const deep = text.split('\n').findIndex((row) => (/^ */.exec(row)?.[0].length ?? 0) > 4 * DEPTH_MAX && /^ *[^ #]/.test(row));
  return deep === -1 ? null : { line: deep + 1, message: `a line is indented by more than ${4 * DEPTH_MAX} columns` };
}

function findFormalProblems(document: Document.Parsed, lines: LineCounter): Problem[] {
  const at = (offset: number | undefined): number => Math.max(1, lines.linePos(offset ?? 0).line);
  const found = [...document.errors, ...document.warnings].map((e) => problem(at(e.pos[0]), '', sayFormal(e.code, e.message)));
  if (found.length > 0) return found;
  if (document.contents === null) return [problem(1, '', 'the file is empty: it needs at least `module: <name>`')];
  if (!isMap(document.contents)) return [problem(1, '', 'the file is not a mapping: it begins with `module: <name>`')];
  visit(document, {
    Alias(_key, node) {
      found.push(problem(at(node.range?.[0]), '', `*${node.source}: aliases are not read here; write the value out`));
    },
    Pair(_key, pair) {
      if (isNode(pair.key) && !isScalar(pair.key) && !isAlias(pair.key)) found.push(problem(at(pair.key.range?.[0]), '', 'a key is a plain word'));
    },
    Scalar(_key, node) {
      const { value } = node;
      if (typeof value === 'string' && (value.includes('\0') || /\p{Cs}/u.test(value))) {
        found.push(problem(at(node.range?.[0]), '', 'a value holds a NUL or half a character, which cannot be stored'));
      }
    },
  });
  return found;
}

function sayFormal(code: string, message: string): string {
  switch (code) {
    case 'DUPLICATE_KEY':
      return 'this key stands here twice: keep one';
    case 'MULTIPLE_DOCS':
      return 'the file holds several documents (---): keep one';
    case 'TAB_AS_INDENT':
      return 'indented by a tab: YAML wants spaces';
    case 'TAG_RESOLVE_FAILED':
      return 'tags (!…) are not read here: write a plain value';
    default:
      return `not YAML: ${message.replace(/\s+/g, ' ').slice(0, 200)}`;
  }
}

/** The line of the deepest part of the path that the file has. */
function lineOf(document: Document.Parsed, lines: LineCounter, path: ReadonlyArray<string | number>): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const part of path) {
    let next: unknown;
    if (isMap(node)) next = node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === String(part));
    else if (isSeq(node)) next = node.items[Number(part)];
    if (next === undefined) break;
    const start = isPair(next) ? next.key : next;
    if (isNode(start)) offset = start.range?.[0] ?? offset;
    node = isPair(next) ? next.value : next;
  }
  return Math.max(1, lines.linePos(offset).line);
}

/** resources[0].service.ready */
function keyOf(path: ReadonlyArray<string | number>): string {
  return path
    .map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i === 0 ? '' : '.'}${part}`))
    .join('')
    .slice(0, 200);
}
