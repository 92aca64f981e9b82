import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, posix } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

/** What runs on a node or a builder: no store, no Temporal. Packing and keeping processes are tools without facts. */
const OF_A_NODE = ['src/domain', 'src/schema', 'src/link', 'src/registry', 'src/pack', 'src/processes'];

/** What a room may import of the others, at run time or as a type. A room that is not named may import any. */
const MAY_IMPORT: Record<string, string[]> = {
  'src/domain': [],
  'src/schema': ['src/domain'],
  'src/registry': ['src/domain', 'src/schema'],
  'src/link': ['src/domain', 'src/schema'],
  'src/source': ['src/domain'],
  'src/imports': ['src/domain', 'src/schema'],
  'src/inventory': ['src/domain', 'src/schema'],
  'src/pack': ['src/domain'],
  'src/builder': [...OF_A_NODE, 'src/source', 'src/imports'],
  'src/host': OF_A_NODE,
  'src/board': ['src/domain', 'src/schema'],
  workflows: ['src/domain'],
};

/** The forms of what people and machines write are named in the domain as types, which are not there at run time. */
const MAY_NAME_TYPES_OF: Record<string, string[]> = { 'src/domain': ['src/schema'] };

/** Not even through another room: neither a node nor a builder holds what the store is reached with. */
const MUST_NOT_REACH: Record<string, string> = { 'src/host': 'src/inventory', 'src/builder': 'src/inventory', workflows: 'src/inventory' };

/** Packages that a room may use at run time, where it may not use any. */
const RUNTIME_PACKAGES: Record<string, string[]> = {
  'src/domain': [],
  workflows: ['@temporalio/workflow', '@temporalio/common'],
};

interface Import {
  specifier: string;
  isType: boolean;
}

type Sources = Map<string, string>;

describe('the arrows between the rooms', () => {
  test('point only where the design lets them', () => {
    expect(offences(readSources())).toEqual([]);
  });

  test.each<[string, Record<string, string>, string]>([
    ['a room', { 'src/domain/a.ts': "import { b } from '../schema/b';", 'src/schema/b.ts': '' }, 'src/domain/a.ts imports src/schema'],
    [
      'a type of a room',
      { 'src/host/a.ts': "import type { B } from '../inventory/b';", 'src/inventory/b.ts': '' },
      'src/host/a.ts imports src/inventory',
    ],
    ['a re-export', { 'src/domain/a.ts': "export * from '../cli/b';", 'src/cli/b.ts': '' }, 'src/domain/a.ts imports src/cli'],
    ['a require', { 'src/domain/a.ts': "const b = require('../cli/b');", 'src/cli/b.ts': '' }, 'src/domain/a.ts imports src/cli'],
    ['an import type', { 'src/domain/a.ts': "type B = import('../cli/b').B;", 'src/cli/b.ts': '' }, 'src/domain/a.ts imports src/cli'],
    ['an import equals', { 'src/domain/a.ts': "import b = require('../cli/b');", 'src/cli/b.ts': '' }, 'src/domain/a.ts imports src/cli'],
    ['a dynamic import', { workflows: '', 'workflows/a.ts': "await import('../src/cli/b');", 'src/cli/b.ts': '' }, 'workflows/a.ts imports src/cli'],
    ['a library in the domain', { 'src/domain/a.ts': "import { z } from 'zod';" }, 'src/domain/a.ts uses zod'],
    ['Node in the domain', { 'src/domain/a.ts': "import { join } from 'node:path';" }, 'src/domain/a.ts uses node:path'],
    ['a library in a workflow', { 'workflows/a.ts': "import pg from 'pg';" }, 'workflows/a.ts uses pg'],
  ])('are seen to be broken by %s', (_, files, offence) => {
    expect(offences(new Map(Object.entries(files)))).toContain(offence);
  });

  test('are seen to be broken through another room', () => {
    const files = {
      'src/host/a.ts': "import { b } from '../link/b';",
      'src/link/b.ts': "import { c } from '../inventory/c';",
      'src/inventory/c.ts': '',
    };
    expect(offences(new Map(Object.entries(files)))).toContain('src/host/a.ts reaches src/inventory');
  });

  test('let the domain name a type of a schema, and no more of it', () => {
    const schema: [string, string] = ['src/schema/b.ts', ''];
    expect(offences(new Map([['src/domain/a.ts', "import type { B } from '../schema/b';"], schema]))).toEqual([]);
    expect(offences(new Map([['src/domain/a.ts', "import { b } from '../schema/b';"], schema]))).toEqual(['src/domain/a.ts imports src/schema']);
  });

  test('let the domain name a type of a library', () => {
    expect(offences(new Map([['src/domain/a.ts', "import type { Z } from 'zod';"]]))).toEqual([]);
  });
});

function offences(sources: Sources): string[] {
  const imports = new Map([...sources].map(([file, text]) => [file, importsOf(file, text)]));
  return [...imports].flatMap(([file, found]) => {
    const room = roomOf(file);
    const packages = RUNTIME_PACKAGES[room];
    const used = found.filter(({ specifier, isType }) => !specifier.startsWith('.') && !isType).map(({ specifier }) => specifier);
    const named = MAY_NAME_TYPES_OF[room] ?? [];
    const rooms = found.flatMap((one) =>
      targets(file, [one], sources)
        .map(roomOf)
        .filter((other) => !(one.isType && named.includes(other))),
    );
    const allowed = MAY_IMPORT[room];
    const forbidden = MUST_NOT_REACH[room];
    return [
      ...rooms.filter((other) => other !== room && allowed !== undefined && !allowed.includes(other)).map((other) => `${file} imports ${other}`),
      ...used
        .filter((name) => packages !== undefined && !packages.some((allowedName) => isOf(name, allowedName)))
        .map((name) => `${file} uses ${name}`),
      ...(forbidden !== undefined && reaches(file, forbidden, imports, sources) ? [`${file} reaches ${forbidden}`] : []),
    ];
  });
}

/** Only what is there at run time counts: a type takes no code along. */
function reaches(from: string, room: string, imports: Map<string, Import[]>, sources: Sources): boolean {
  const seen = new Set([from]);
  for (const file of seen) {
    if (roomOf(file) === room) return true;
    const atRunTime = (imports.get(file) ?? []).filter(({ isType }) => !isType);
    for (const target of targets(file, atRunTime, sources)) seen.add(target);
  }
  return false;
}

function targets(file: string, found: Import[], sources: Sources): string[] {
  return found.flatMap(({ specifier }) => {
    if (!specifier.startsWith('.')) return [];
    const path = posix.join(posix.dirname(file), specifier);
    return [[`${path}.ts`, `${path}/index.ts`].find((candidate) => sources.has(candidate)) ?? path];
  });
}

function isOf(specifier: string, name: string): boolean {
  return specifier === name || (specifier.startsWith(`${name}/`) && !builtinModules.includes(specifier));
}

function roomOf(file: string): string {
  const [top = '', room = ''] = file.split('/');
  return top === 'src' ? `src/${room}` : top;
}

function importsOf(file: string, text: string): Import[] {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const found: Import[] = [];
  const add = (source: unknown, isType: boolean) => {
    if (isLiteral(source)) found.push({ specifier: source.value, isType });
  };
  new Visitor({
    ImportDeclaration: ({ source, importKind, specifiers }) => {
      const onlyTypes = specifiers.length > 0 && specifiers.every((one) => one.type === 'ImportSpecifier' && one.importKind === 'type');
      add(source, importKind === 'type' || onlyTypes);
    },
    ExportNamedDeclaration: ({ source, exportKind }) => add(source, exportKind === 'type'),
    ExportAllDeclaration: ({ source, exportKind }) => add(source, exportKind === 'type'),
    ImportExpression: ({ source }) => add(source, false),
    TSImportType: ({ source }) => add(source, true),
    TSExternalModuleReference: ({ expression }) => add(expression, false),
    CallExpression: ({ callee, arguments: given }) => {
      if (callee.type === 'Identifier' && callee.name === 'require') add(given[0], false);
    },
  }).visit(program);
  return found;
}

function isLiteral(node: unknown): node is { value: string } {
  return typeof node === 'object' && node !== null && 'value' in node && typeof node.value === 'string';
}

function readSources(): Sources {
  const root = join(__dirname, '..');
  const files = ['src', 'workflows', 'activities', 'workers'].flatMap((top) =>
    readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => posix.join(top, file)),
  );
  return new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}
