import { readFileSync } from 'node:fs';
import { Language, type Node, Parser } from 'web-tree-sitter';
import { bindingsOf, leavesOf, Scope, unraw } from './rustScopes';
import type { Outcome, Parse } from './types';

/** What one file of Rust names by a path that begins outside of what the file declares. */

export interface RustUse {
  /** `use a::b`, `extern crate a`, `a::b` in code; `mod a;` names a file, which may be one of tests. */
  readonly kind: 'use' | 'extern' | 'path' | 'mod';
  /** The first name of the path, without `r#`. */
  readonly name: string;
  /** `::a::b` */
  readonly isAbsolute: boolean;
  /** Only compiled for tests. */
  readonly isTest: boolean;
  readonly line: number;
  /** Of `mod`: the modules of the file around it and its own name, or its `#[path]`. */
  readonly at?: { readonly within: readonly string[]; readonly path: string | null };
}

/** Larger files are what a generator wrote; a syntax tree takes some 40 times its text. */
const MOST_BYTES = 2 << 20;
const COMMENTS = new Set(['line_comment', 'block_comment']);

export async function rustParser(): Promise<Parse<RustUse>> {
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(readFileSync(require.resolve('tree-sitter-rust/tree-sitter-rust.wasm'))));
  return (_, bytes) => {
    if (bytes.length > MOST_BYTES)
      return { uses: [], computed: [], broken: { line: 1, reason: `is larger than ${MOST_BYTES >> 20} MiB and is not read` } };
    const tree = parser.parse(bytes.toString().replace(/^\uFEFF/, ''));
    if (tree === null) throw new Error('the parser has no language');
    try {
      return usesOf(tree.rootNode);
    } finally {
      tree.delete();
    }
  };
}

function usesOf(root: Node): Outcome<RustUse> {
  const reader = new Reader();
  reader.items(root, { scope: new Scope('module', null, bindingsOf(root)), isTest: false, within: [] });
  const error = root.hasError ? firstError(root) : null;
  const broken = error === null ? null : { line: error.startPosition.row + 1, reason: 'what stands here is no Rust that is known' };
  return { uses: [...reader.found.values()], computed: [], broken };
}

/** Without recursion: the tree of what does not parse may be as deep as the text is long. */
function firstError(root: Node): Node {
  let first: Node | null = null;
  const waiting = [root];
  // Each node of the tree once at most.
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if ((node.isError || node.isMissing) && (first === null || node.startIndex < first.startIndex)) first = node;
    else if (node.hasError) waiting.push(...node.children);
  }
  return first ?? root;
}

interface Around {
  readonly scope: Scope;
  readonly isTest: boolean;
  /** The inline modules. */
  readonly within: readonly string[];
}

class Reader {
  /** Each once, at its first place. */
  readonly found = new Map<string, RustUse>();

  /** Attributes stand before what they are of, and are of it. */
  items(parent: Node, around: Around): void {
    let attributes: Node[] = [];
    const isTest = around.isTest || parent.children.some((child) => child.type === 'inner_attribute_item' && isOfTests(child));
    for (const child of parent.children) {
      if (COMMENTS.has(child.type)) continue;
      if (child.type === 'attribute_item') {
        attributes.push(child);
        continue;
      }
      const own = { ...around, isTest: isTest || attributes.some(isOfTests) };
      for (const attribute of attributes) this.node(attribute, own);
      this.node(child, own, attributes);
      attributes = [];
    }
    for (const attribute of attributes) this.node(attribute, { ...around, isTest });
  }

  private node(node: Node, around: Around, attributes: readonly Node[] = []): void {
    switch (node.type) {
      case 'use_declaration':
        this.use(node, around);
        return;
      case 'extern_crate_declaration':
        this.add('extern', unraw(node.childForFieldName('name')?.text ?? ''), node, around);
        return;
      case 'mod_item':
        this.module(node, around, attributes);
        return;
      case 'block':
        this.items(node, { ...around, scope: new Scope('block', around.scope, bindingsOf(node)) });
        return;
      case 'token_tree':
        this.tokens(node, around);
        return;
      case 'scoped_identifier':
      case 'scoped_type_identifier':
        this.path(node, around);
        break;
      case 'visibility_modifier':
      case 'token_tree_pattern':
        return;
    }
    if (node.childCount > 0) this.items(node, around);
  }

  private use(node: Node, around: Around): void {
    for (const { segments, line } of leavesOf(node)) {
      const isAbsolute = segments[0] === '';
      const name = segments[isAbsolute ? 1 : 0];
      // `use a;` binds the very name that it asks for.
      if (name !== undefined) this.add('use', name, line, around, isAbsolute);
    }
  }

  private module(node: Node, around: Around, attributes: readonly Node[]): void {
    const name = unraw(node.childForFieldName('name')?.text ?? '');
    const body = node.childForFieldName('body');
    if (body !== null) {
      const scope = new Scope('module', around.scope, bindingsOf(body));
      this.items(body, { scope, isTest: around.isTest, within: [...around.within, name] });
      return;
    }
    const path = attributes.map((one) => /^#\[\s*path\s*=\s*"([^"]*)"\s*\]$/.exec(one.text)?.[1]).find((one) => one !== undefined) ?? null;
    const at = { within: [...around.within, name], path };
    const key = `mod ${around.isTest} ${at.within.join('::')}`;
    this.found.set(key, { kind: 'mod', name, isAbsolute: false, isTest: around.isTest, line: node.startPosition.row + 1, at });
  }

  private path(node: Node, around: Around): void {
    const path = node.childForFieldName('path');
    const name = node.childForFieldName('name');
    if (path === null && name !== null && node.firstChild?.type === '::') this.add('path', unraw(name.text), node, around, true);
    if (path?.type === 'identifier') this.add('path', unraw(path.text), node, around);
  }

  /** What macros and attributes are given is a row of tokens: a name before `::` that begins a path. */
  private tokens(tree: Node, around: Around): void {
    const children = tree.children.filter(({ type }) => !COMMENTS.has(type));
    for (const [at, child] of children.entries()) {
      if (child.childCount > 0) this.node(child, around);
      if (child.type !== 'identifier' || children[at + 1]?.type !== '::') continue;
      const isAfter = children[at - 1]?.type === '::';
      if (!isAfter) this.add('path', unraw(child.text), child, around);
      else if (!ENDS_A_PART.has(children[at - 2]?.type ?? '')) this.add('path', unraw(child.text), child, around, true);
    }
  }

  private add(kind: RustUse['kind'], name: string, place: Node | number, { scope, isTest }: Around, isAbsolute = false): void {
    if (name === '' || IN_THE_CRATE.has(name) || (!isAbsolute && kind !== 'extern' && scope.declares(name))) return;
    const line = typeof place === 'number' ? place : place.startPosition.row + 1;
    const key = `${kind} ${isAbsolute} ${isTest} ${name}`;
    if (!this.found.has(key)) this.found.set(key, { kind, name, isAbsolute, isTest, line });
  }
}

const IN_THE_CRATE = new Set(['self', 'Self', 'super', 'crate']);

/** Before `::`, what makes it go on with a path. */
const ENDS_A_PART = new Set(['identifier', 'metavariable', 'crate', 'self', 'super', 'primitive_type', '>']);

/** `#[test]` and its like, and a `#[cfg]` that holds in tests only. */
function isOfTests(item: Node): boolean {
  const attribute = item.namedChildren.find(({ type }) => type === 'attribute');
  const name = attribute?.namedChildren[0]?.text ?? '';
  if (/^(?:[\w:]+::)?(?:test|bench)$/.test(name)) return true;
  const given = attribute?.childForFieldName('arguments') ?? null;
  return name === 'cfg' && given !== null && conditions(given).some(needsTest);
}

/** What stands between the commas. */
function conditions(tree: Node): Node[][] {
  const parts: Node[][] = [[]];
  for (const child of tree.children.slice(1, -1)) {
    if (child.type === ',') parts.push([]);
    else if (!COMMENTS.has(child.type)) parts.at(-1)?.push(child);
  }
  return parts.filter((part) => part.length > 0);
}

function needsTest([word, given]: readonly Node[]): boolean {
  if (given === undefined) return word?.text === 'test';
  if (given.type !== 'token_tree') return false;
  if (word?.text === 'all') return conditions(given).some(needsTest);
  return word?.text === 'any' && conditions(given).every(needsTest) && conditions(given).length > 0;
}
