/** What the pages say is there, is there; and what a person may set or write stands on a page. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { verbs } from '../../src/cli/verbs';
import { defaultTimes } from '../../src/domain/times';
import { manifestJsonSchema } from '../../src/schema/manifestIssues';

const ROOT = join(__dirname, '..', '..');
const PAGES = ['README.md', ...readdirSync(join(ROOT, 'docs')).flatMap((file) => (file.endsWith('.md') ? [join('docs', file)] : []))];

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** As GitHub makes them of headings. */
function anchorsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replace(/ /g, '-'),
  );
}

test.each(PAGES)('every link of %s leads somewhere', (page) => {
  const broken = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
    if (/^https?:/.test(link)) return [];
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : join(dirname(page), path);
    const isThere = existsSync(join(ROOT, target)) && (anchor === undefined || anchorsOf(target).includes(anchor));
    return isThere ? [] : [link];
  });
  expect(broken).toEqual([]);
});

test('every verb that a page names is one', () => {
  const named = PAGES.flatMap((page) => [...read(page).matchAll(/(?:`|\$ (?:npx )?|^)tally ([a-z]+)/gm)].map(([, verb = '']) => verb));
  expect(named.length).toBeGreaterThan(30);
  expect([...new Set(named)].filter((verb) => verb !== 'help' && !Object.hasOwn(verbs, verb))).toEqual([]);
});

test('every key of the manifest stands in its reference', () => {
  const reference = read('docs/manifest.md');
  const keys = keysOf(manifestJsonSchema());
  expect(keys.size).toBeGreaterThan(25);
  expect([...keys].filter((key) => !new RegExp(`\\b${key}\\b`).test(reference))).toEqual([]);
});

test('every situation of a module is explained', () => {
  const page = read('docs/operating.md');
  const [, union = ''] = /export type Situation =([^;]*);/.exec(read('src/domain/facts.ts')) ?? [];
  const situations = [...union.matchAll(/'([^']+)'/g)].map(([, situation = '']) => situation);
  expect(situations.length).toBeGreaterThan(10);
  expect(situations.filter((situation) => !page.includes(`\n| ${situation} | `))).toEqual([]);
});

test('every time that can be set stands with its default', () => {
  const page = read('docs/operating.md');
  const missing = Object.entries(defaultTimes).filter(([name, ms]) => {
    const variable = `TALLY_TIMES_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
    return !page.includes(`| \`${variable}\` | ${said(ms)} |`);
  });
  expect(missing).toEqual([]);
});

test('every variable that a process reads stands in its table', () => {
  const page = read('docs/deploying.md');
  const variables = ['src/config.ts', 'src/builder/config.ts'].flatMap((file) =>
    [...read(file).matchAll(/^ {2}([A-Z][A-Z_]+): /gm)].map(([, variable = '']) => variable),
  );
  expect(variables.length).toBeGreaterThan(15);
  expect(variables.filter((variable) => !variable.startsWith('TALLY_TIMES_') && !page.includes(`| \`${variable}\` |`))).toEqual([]);
});

function keysOf(schema: unknown): Set<string> {
  const keys = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'properties') for (const property of Object.keys(inner as object)) keys.add(property);
      visit(inner);
    }
  };
  visit(schema);
  return keys;
}

function said(ms: number): string {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000} h`;
  if (ms % 60_000 === 0 && ms > 60_000) return `${ms / 60_000} min`;
  return `${ms / 1_000} s`;
}
