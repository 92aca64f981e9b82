import type {
  CallExpression,
  Comment,
  EcmaScriptModule,
  Expression,
  ImportExpression,
  ParseResult,
  ParserOptions,
  Program,
  StringLiteral,
  TSExternalModuleReference,
  TSGlobalDeclaration,
  TSImportType,
  TSModuleDeclaration,
  VariableDeclarator,
} from 'oxc-parser';
import { parseSync, Visitor } from 'oxc-parser';
import type { Outcome } from './types';

/** What one file of JavaScript or TypeScript asks for, as it stands there. */

export interface JavaScriptUse {
  /** A specifier, or its beginning where the rest is only known in a run. */
  readonly text: string;
  readonly isBeginning: boolean;
  readonly line: number;
  /** `/// <reference types>`: looked for among `@types` as well. */
  readonly isTypesReference: boolean;
}

/** Larger files are what a bundler wrote; a syntax tree takes some 50 times its text. */
const MOST_BYTES = 4 << 20;
/** Of its beginning a file without text is known. */
const BEGINNING = 8_192;
/** Without one of these words a file imports nothing. */
const IMPORTING = /import|require|export|reference/;
const TYPESCRIPT = /\.(?:[cm]?ts|tsx)$/;

const nothing: Outcome<JavaScriptUse> = { uses: [], computed: [], broken: null };

export function parseJavaScript(path: string, bytes: Buffer): Outcome<JavaScriptUse> {
  const source = textOf(bytes);
  if (source === null) return nothing;
  if (bytes.length <= MOST_BYTES) return usesOf(path, source);
  const reason = `is larger than ${MOST_BYTES >> 20} MiB and is not read: keep what a tool writes out of the repository`;
  return IMPORTING.test(source) ? { ...nothing, broken: { line: 1, reason } } : nothing;
}

/** Null for what only ends as source does: a film in `.ts`, a translation in XML. */
function textOf(bytes: Buffer): string | null {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return bytes.toString('utf16le').slice(1);
  if (bytes.subarray(0, BEGINNING).includes(0)) return null;
  const text = bytes.toString().replace(/^\uFEFF/, '');
  return /^\s*<(?:\?xml|!DOCTYPE TS)/.test(text) ? null : text;
}

/** @param path decides the language by its ending, as every tool does. */
export function usesOf(path: string, source: string): Outcome<JavaScriptUse> {
  const result = parsed(path, source);
  const lineOf = lines(source);
  const uses: JavaScriptUse[] = [];
  const computed: { line: number; reason: string }[] = [];
  const add = (text: string, at: number): void => void uses.push({ text, isBeginning: false, line: lineOf(at), isTypesReference: false });
  const addEach = (argument: Expression, at: number, call: string): void => {
    for (const found of textsOf(argument)) {
      if (found === null) computed.push({ line: lineOf(at), reason: `what ${call} asks for is only known in a run` });
      else uses.push({ ...found, line: lineOf(at), isTypesReference: false });
    }
  };
  if (needsTree(source, result.module)) visit(result, add, addEach);
  else for (const { text, at } of statements(result.module)) add(text, at);
  if (TYPESCRIPT.test(path) && source.includes('<reference')) {
    for (const { text, at } of references(result.program, result.comments))
      uses.push({ text, isBeginning: false, line: lineOf(at), isTypesReference: true });
  }
  const error = result.errors.find(({ severity }) => severity === 'Error');
  const broken = error === undefined ? null : { line: lineOf(error.labels[0]?.start ?? 0), reason: error.message };
  return { uses, computed, broken };
}

/** A `.js` may be a module, CommonJS with a `return` at its top, or hold types that a build strips: whichever of these parses. */
function parsed(path: string, source: string): ParseResult {
  let first: ParseResult | null = null;
  for (const options of readings(path)) {
    const result = parseSync(path, source, options);
    if (!result.errors.some(({ severity }) => severity === 'Error')) return result;
    first ??= result;
  }
  if (first === null) throw new Error(`no way to read ${path}`);
  return first;
}

function readings(path: string): ParserOptions[] {
  if (/\.d\.[cm]?ts$|\.d\.[^./]+\.ts$/.test(path)) return [{ lang: 'dts' }];
  if (path.endsWith('.mts')) return [{ lang: 'ts', sourceType: 'module' }];
  if (path.endsWith('.cts')) return [{ lang: 'ts', sourceType: 'commonjs' }, { lang: 'ts' }];
  if (path.endsWith('.ts') || path.endsWith('.tsx')) {
    const lang = path.endsWith('x') ? 'tsx' : 'ts';
    return [
      { lang, sourceType: 'module' },
      { lang, sourceType: 'commonjs' },
    ];
  }
  const types: ParserOptions = { lang: 'tsx', sourceType: 'module' };
  if (path.endsWith('.mjs')) return [{ lang: 'jsx', sourceType: 'module' }, types];
  const script: ParserOptions = { lang: 'jsx', sourceType: 'commonjs' };
  if (path.endsWith('.cjs')) return [script, { lang: 'jsx', sourceType: 'module' }];
  return [{ lang: 'jsx', sourceType: 'unambiguous' }, script, types];
}

/**
 * What stands in statements alone is listed by the parser without the tree, which costs several times the parsing to bring over. The tree
 * is needed as soon as the text may say more: another `import` than these, a `require`, a declared module, an `export {}` that is not listed.
 */
function needsTree(source: string, { staticImports }: EcmaScriptModule): boolean {
  if (MORE_THAN_STATEMENTS.test(source)) return true;
  const words = source.match(/\bimport\b/g)?.length ?? 0;
  return words !== staticImports.length;
}

const MORE_THAN_STATEMENTS = /require|Require|\bdeclare\b|\bexport\s*(?:type\s*)?(?:\/[/*]|\{\s*(?:\}|\/[/*]))/;

function statements({ staticImports, staticExports }: EcmaScriptModule): { text: string; at: number }[] {
  const exported = staticExports.flatMap(({ start, entries }) => {
    const from = entries[0]?.moduleRequest?.value;
    return from === undefined ? [] : [{ text: from, at: start }];
  });
  return [...staticImports.map(({ start, moduleRequest }) => ({ text: moduleRequest.value, at: start })), ...exported];
}

function visit(result: ParseResult, add: (text: string, at: number) => void, addEach: (of: Expression, at: number, call: string) => void): void {
  /** Names of `require` functions that `createRequire` made. */
  const requires = new Set(['require']);
  const addSource = ({ source, start }: { source: StringLiteral | null; start: number }): void => {
    if (source !== null) add(source.value, start);
  };
  new Visitor({
    ImportDeclaration: addSource,
    ExportNamedDeclaration: addSource,
    ExportAllDeclaration: addSource,
    ImportExpression: ({ source, start }: ImportExpression) => addEach(source, start, 'import()'),
    TSImportType: ({ source, start }: TSImportType) => add(source.value, start),
    TSExternalModuleReference: ({ expression, start }: TSExternalModuleReference) => add(expression.value, start),
    // Outside a module it declares that name; inside one it adds to what the name has.
    TSModuleDeclaration: ({ id, start }: TSModuleDeclaration | TSGlobalDeclaration) => {
      if (id.type === 'Literal' && result.module.hasModuleSyntax) add(id.value, start);
    },
    VariableDeclarator: ({ id, init }: VariableDeclarator) => {
      if (id.type === 'Identifier' && init !== null && isCreateRequire(init)) requires.add(id.name);
    },
    CallExpression: (call: CallExpression) => {
      const name = requiring(call, requires);
      const [argument] = call.arguments;
      if (name === null || argument === undefined) return;
      if (argument.type !== 'SpreadElement') addEach(argument, call.start, `${name}()`);
    },
  }).visit(result.program);
}

function requiring({ callee }: CallExpression, requires: ReadonlySet<string>): string | null {
  if (callee.type === 'Identifier') return requires.has(callee.name) ? callee.name : null;
  if (isCreateRequire(callee)) return 'require';
  if (callee.type !== 'MemberExpression' || callee.computed || callee.property.type !== 'Identifier') return null;
  const { object, property } = callee;
  if (object.type === 'Identifier' && requires.has(object.name) && property.name === 'resolve') return `${object.name}.resolve`;
  if (object.type === 'Identifier' && object.name === 'module' && property.name === 'require') return 'module.require';
  return object.type === 'MetaProperty' && property.name === 'resolve' ? 'import.meta.resolve' : null;
}

function isCreateRequire(expression: Expression): boolean {
  if (expression.type !== 'CallExpression') return false;
  const { callee } = expression;
  if (callee.type === 'Identifier') return callee.name === 'createRequire';
  return callee.type === 'MemberExpression' && callee.property.type === 'Identifier' && callee.property.name === 'createRequire';
}

type Text = { text: string; isBeginning: boolean };

/** What an expression can be, each way it can go; null where nothing of it is known. */
function textsOf(expression: Expression): (Text | null)[] {
  switch (expression.type) {
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSNonNullExpression':
      return textsOf(expression.expression);
    case 'ConditionalExpression':
      return [...textsOf(expression.consequent), ...textsOf(expression.alternate)];
    case 'LogicalExpression':
      return [...textsOf(expression.left), ...textsOf(expression.right)];
    default:
      return [beginningOf(expression)];
  }
}

function beginningOf(expression: Expression): Text | null {
  if (expression.type === 'Literal') return typeof expression.value === 'string' ? { text: expression.value, isBeginning: false } : null;
  if (expression.type === 'TemplateLiteral') {
    const text = expression.quasis[0]?.value.cooked ?? '';
    const isBeginning = expression.expressions.length > 0;
    return isBeginning && text === '' ? null : { text, isBeginning };
  }
  if (expression.type === 'BinaryExpression' && expression.operator === '+') {
    const left = beginningOf(expression.left);
    if (left === null || left.isBeginning) return left;
    const right = beginningOf(expression.right);
    return { text: left.text + (right?.text ?? ''), isBeginning: right?.isBeginning ?? true };
  }
  return null;
}

const MOST_REFERENCE = 1_000;

/** They count only before the first statement: below it they are comments like others. */
function references(program: Program, comments: readonly Comment[]): { text: string; at: number }[] {
  const end = program.body[0]?.start ?? Number.POSITIVE_INFINITY;
  return comments.flatMap(({ type, value, start }) => {
    const text =
      type === 'Line' && start < end && value.length < MOST_REFERENCE
        ? /^\/\s*<reference\s[^>]*\btypes\s*=\s*(["'])(.+?)\1/.exec(value)?.[2]
        : undefined;
    return text === undefined ? [] : [{ text, at: start }];
  });
}

/** @returns from an offset the line that it is on, counted from 1. */
function lines(source: string): (at: number) => number {
  let starts: number[] | null = null;
  return (at) => {
    if (starts === null) {
      starts = [0];
      for (let end = source.indexOf('\n'); end !== -1; end = source.indexOf('\n', end + 1)) starts.push(end + 1);
    }
    let low = 0;
    for (let high = starts.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= at) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}
