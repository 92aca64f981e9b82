import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { manifest } from './manifest';

/** Turns what zod found into sentences for the author: the key, what was expected there, and what was probably meant. */

/** A path into the file and what is wrong there. */
export interface Finding {
  path: Array<string | number>;
  message: string;
}

type Issue = z.core.$ZodIssue;
type Path = Array<string | number>;

interface Schema {
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  anyOf?: Schema[];
}

/** What the author may write, as JSON Schema: the source of the suggestions and of the file for editors. */
export function manifestJsonSchema(): object {
  return z.toJSONSchema(manifest, { io: 'input', target: 'draft-7', unrepresentable: 'any' });
}

export function explainIssues(error: z.ZodError, written: unknown): Finding[] {
  return explainAll(error.issues, [], written);
}

/** A key that is not known comes before one that is missing: it is mostly the same one. */
function explainAll(issues: readonly Issue[], base: Path, written: unknown): Finding[] {
  const unknownFirst = [...issues].sort((a, b) => Number(b.code === 'unrecognized_keys') - Number(a.code === 'unrecognized_keys'));
  return unknownFirst.flatMap((issue) => explain(issue, [...base, ...toPath(issue.path)], written));
}

/** The nearest of the known words, where one is near enough to have been meant. */
function nearest(word: string, known: readonly string[]): string | null {
  const [best] = known.map((candidate) => ({ candidate, far: distance(word.toLowerCase(), candidate) })).sort((a, b) => a.far - b.far);
  if (best === undefined) return null;
  const near = best.candidate.length < 4 ? 1 : Math.max(2, Math.floor(best.candidate.length / 2.5));
  return best.far <= near ? best.candidate : null;
}

/** `, did you mean X?` or the list of what is known. */
export function suggest(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  if (meant !== null) return `did you mean \`${meant}\`?`;
  return known.length === 0 ? 'nothing is known here' : `known here: ${[...known].sort().join(', ')}`;
}

function explain(issue: Issue, path: Path, written: unknown): Finding[] {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({ path: [...path, key], message: `unknown key \`${shorten(key)}\`: ${suggest(key, knownKeys(path))}` }));
    case 'invalid_union':
      return explainUnion(issue, path, written);
    case 'invalid_type':
      return [{ path, message: explainType(issue.expected, at(written, path), path) }];
    case 'invalid_value': {
      const values = issue.values.map(String);
      const value = at(written, path);
      const meant = typeof value === 'string' ? nearest(value, values) : null;
      return [{ path, message: `expected ${values.join(' or ')}${meant === null ? '' : `: did you mean \`${meant}\`?`}` }];
    }
    case 'invalid_key':
      return issue.issues.map((inner) => ({ path, message: inner.message }));
    default:
      return [{ path, message: issue.message }];
  }
}

/** A mapping that may be one of several forms is explained as the form whose leading key it has. */
function explainUnion(issue: Extract<Issue, { code: 'invalid_union' }>, path: Path, written: unknown): Finding[] {
  const value = at(written, path);
  const branches = issue.errors;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const plain = branches.find((branch) => branch.every((inner) => inner.code !== 'invalid_type'));
    if (plain !== undefined) return explainAll(plain, path, written);
    const first = branches[0]?.[0];
    if (first?.code === 'invalid_type') return [{ path, message: explainType(first.expected, value, path) }];
    return [{ path, message: `expected a mapping with ${oneOf(knownKeys(path))}` }];
  }
  const keys = Object.keys(value);
  const known = knownKeys(path);
  const leading = keys.filter((key) => known.includes(key));
  const stranger = keys.find((key) => !known.includes(key));
  if (leading.length === 0) {
    if (stranger === undefined) return [{ path, message: `expected ${oneOf(known)}` }];
    return [{ path: [...path, stranger], message: `unknown key \`${shorten(stranger)}\`: ${suggest(stranger, known)}` }];
  }
  const own = branches.filter((branch) => !branch.some((inner) => inner.path.length === 0 && inner.code === 'unrecognized_keys'));
  const fitting = own[0];
  if (fitting !== undefined) return explainAll(fitting, path, written);
  if (stranger !== undefined) return [{ path: [...path, stranger], message: `unknown key \`${shorten(stranger)}\`: ${suggest(stranger, known)}` }];
  return [
    {
      path,
      message: `${leading.join(' and ')} exclude each other: keep one${keys.length > 1 ? ', and begin a new item with `-` for the other' : ''}`,
    },
  ];
}

function explainType(expected: string, value: unknown, path: Path): string {
  if (value === undefined) return `\`${String(path.at(-1) ?? '')}\` is missing`;
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) return 'expected text: put it in quotes';
  const words: Record<string, string> = { object: 'a mapping', record: 'a mapping', array: 'a list (- …)', string: 'text', boolean: 'true or false' };
  return `expected ${words[expected] ?? expected}, found ${describe(value)}`;
}

function describe(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a mapping' : `\`${shorten(String(value))}\``;
}

function oneOf(keys: readonly string[]): string {
  return keys.length === 1 ? `\`${keys[0]}\`` : `one of ${keys.map((key) => `\`${key}\``).join(', ')}`;
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

function toPath(path: readonly PropertyKey[]): Path {
  return path.map((part) => (typeof part === 'symbol' ? String(part) : part));
}

function at(written: unknown, path: Path): unknown {
  let value = written;
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string | number, unknown>)[part];
  }
  return value;
}

/** All keys that any form allows at this place. */
function knownKeys(path: Path): string[] {
  let places: Schema[] = [manifestJsonSchema() as Schema];
  for (const part of path) {
    places = places.flatMap(forms).flatMap((place) => {
      if (typeof part === 'number') return place.items === undefined ? [] : [place.items];
      const property = place.properties?.[part];
      if (property !== undefined) return [property];
      return typeof place.additionalProperties === 'object' ? [place.additionalProperties] : [];
    });
  }
  return [...new Set(places.flatMap(forms).flatMap((place) => Object.keys(place.properties ?? {})))];
}

function forms(place: Schema): Schema[] {
  return place.anyOf === undefined ? [place] : place.anyOf.flatMap(forms);
}
