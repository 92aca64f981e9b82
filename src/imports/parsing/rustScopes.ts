import type { Node } from 'web-tree-sitter';

/** Which names a path in Rust finds before those of other crates: what the module or the block around it declares. */

const DECLARING = new Set(['mod_item', 'struct_item', 'enum_item', 'union_item', 'trait_item', 'type_item']);

interface Leaf {
  /** The first is empty for a path that begins with `::`. */
  readonly segments: readonly string[];
  /** What it is called from here on; null for `*` and `_`. */
  readonly binds: string | null;
  readonly isGlob: boolean;
  readonly line: number;
}

interface Bindings {
  readonly names: ReadonlySet<string>;
  /** `use super::*` */
  readonly hasThoseAbove: boolean;
}

export class Scope {
  constructor(
    private readonly kind: 'module' | 'block',
    private readonly above: Scope | null,
    private readonly bindings: Bindings,
  ) {}

  /** A block sees what is around it, a module only what it takes from there. */
  declares(name: string): boolean {
    if (this.bindings.names.has(name)) return true;
    if (this.kind === 'block') return this.above?.declares(name) ?? false;
    return this.bindings.hasThoseAbove && (this.above?.moduleAround().declares(name) ?? false);
  }

  private moduleAround(): Scope {
    return this.kind === 'module' || this.above === null ? this : this.above.moduleAround();
  }
}

/** What the children of a file, a module's body or a block declare. */
export function bindingsOf(parent: Node): Bindings {
  const names = new Set<string>();
  let hasThoseAbove = false;
  for (const child of parent.namedChildren) {
    if (DECLARING.has(child.type)) names.add(unraw(child.childForFieldName('name')?.text ?? ''));
    if (child.type === 'extern_crate_declaration') {
      const alias = child.childForFieldName('alias');
      if (alias !== null && alias.text !== child.childForFieldName('name')?.text) names.add(unraw(alias.text));
    }
    if (child.type !== 'use_declaration') continue;
    for (const { segments, binds, isGlob } of leavesOf(child)) {
      hasThoseAbove ||= isGlob && segments.length === 1 && segments[0] === 'super';
      // `use a;` and `use a::a;` find `a` elsewhere than in what they bind.
      const root = segments[0] === '' ? segments[1] : segments[0];
      if (binds !== null && binds !== root) names.add(binds);
    }
  }
  return { names, hasThoseAbove };
}

/** Each path that a `use` names. */
export function leavesOf(declaration: Node): Leaf[] {
  const argument = declaration.childForFieldName('argument');
  return argument === null ? [] : leaves(argument, []);
}

function leaves(node: Node, before: readonly string[]): Leaf[] {
  const line = node.startPosition.row + 1;
  switch (node.type) {
    case 'use_list':
      return node.namedChildren.flatMap((child) => leaves(child, before));
    case 'scoped_use_list': {
      const path = node.childForFieldName('path');
      const list = node.childForFieldName('list');
      return list === null ? [] : leaves(list, [...before, ...(path === null ? [''] : segmentsOf(path))]);
    }
    case 'use_as_clause': {
      const [leaf] = leaves(node.childForFieldName('path') ?? node, before);
      const alias = unraw(node.childForFieldName('alias')?.text ?? '_');
      return leaf === undefined ? [] : [{ ...leaf, binds: alias === '_' ? null : alias }];
    }
    case 'use_wildcard': {
      const [path] = node.namedChildren;
      return [{ segments: [...before, ...(path === undefined ? [] : segmentsOf(path))], binds: null, isGlob: true, line }];
    }
    case 'line_comment':
    case 'block_comment':
      return [];
    case 'self': {
      const segments = before.length === 0 ? ['self'] : before;
      return [{ segments, binds: segments.at(-1) ?? null, isGlob: false, line }];
    }
    default: {
      const segments = [...before, ...segmentsOf(node)];
      return [{ segments, binds: segments.at(-1) ?? null, isGlob: false, line }];
    }
  }
}

function segmentsOf(node: Node): string[] {
  if (node.type !== 'scoped_identifier') return [unraw(node.text)];
  const path = node.childForFieldName('path');
  return [...(path === null ? [''] : segmentsOf(path)), unraw(node.childForFieldName('name')?.text ?? '')];
}

export function unraw(name: string): string {
  return name.replace(/^r#/, '');
}
