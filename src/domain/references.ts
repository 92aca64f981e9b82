/** Filling references into texts, where whoever asks may not know them all. */

/**
 * The text with every reference filled in, or the first name that `known` does not know. A literal `$${` becomes `${`.
 * For words that are compared or shown; what goes to a host is filled by the derivation, which leaves it its part.
 */
export function fillIn(text: string, known: (name: string) => string | undefined): { readonly text: string } | { readonly unknown: string } {
  let unknown: string | null = null;
  const filled = text.replace(/\$\$\{|\$\{([^}\n]*)\}/g, (_whole, name: string | undefined) => {
    if (name === undefined) return '${';
    const value = known(name);
    if (value === undefined) unknown ??= name;
    return value ?? '';
  });
  return unknown === null ? { text: filled } : { unknown };
}

/** The names that a value refers to, in its texts at any depth. */
export function referencesIn(value: unknown): string[] {
  if (typeof value === 'string') return [...value.matchAll(/\$\$\{|\$\{([^}\n]*)\}/g)].flatMap(([, name]) => (name === undefined ? [] : [name]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(referencesIn);
}

export interface NodeFacts {
  readonly name: string;
  readonly site: string;
  readonly facts: Readonly<Record<string, string>>;
}

/** `node.name`, `node.address` (its fact `address`) and `facts.KEY` of one node. */
export function ofNode({ name, facts }: NodeFacts): (reference: string) => string | undefined {
  return (reference) => {
    if (reference === 'node.name') return name;
    const [, fact] = /^facts\.(.+)$/.exec(reference) ?? [];
    const key = reference === 'node.address' ? 'address' : fact;
    return key !== undefined && Object.hasOwn(facts, key) ? facts[key] : undefined;
  };
}
