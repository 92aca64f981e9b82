/** How what a module requires is satisfied by what others provide, and what an instance is made from and gives. */
import type { InstanceProvision, Instantiation, Manifest, Parameter, Scope } from '../schema/manifest';
import { PRIVATE } from './derive';
import { fillIn, type NodeFacts, ofNode, referencesIn } from './references';

export interface Place {
  readonly module: string;
  readonly node: string;
  readonly site: string;
}

export interface Candidate extends Place {
  /** Where those who require it may be. */
  readonly scope: Scope;
}

export interface Choice {
  readonly provider: string;
  readonly node: string | null;
}

export type Resolved =
  | { readonly kind: 'satisfied'; readonly provider: Place }
  | { readonly kind: 'several'; readonly candidates: readonly Place[] }
  | { readonly kind: 'missing' };

/**
 * An operator's choice is in force as long as it can be, then what satisfied the requirement before, then the one
 * candidate there is. Of one module on several nodes the one on the same node, then the one of the same site, is meant.
 */
export function resolve(consumer: Place, candidates: readonly Candidate[], choice: Choice | null, before: Choice | null): Resolved {
  const inReach = candidates.filter((one) => one.module !== consumer.module && isInReach(one, consumer)).sort(byName);
  const chosen = choice === null ? inReach : inReach.filter((one) => matches(one, choice));
  const standing = before === null ? [] : chosen.filter((one) => matches(one, before));
  const [left] = standing;
  if (left !== undefined) return { kind: 'satisfied', provider: placeOf(left) };
  const modules = new Set(chosen.map((one) => one.module));
  if (modules.size === 0) return { kind: 'missing' };
  const nearest = modules.size === 1 ? nearestTo(consumer, chosen) : chosen;
  const [only, ...others] = nearest;
  if (only !== undefined && others.length === 0) return { kind: 'satisfied', provider: placeOf(only) };
  return { kind: 'several', candidates: nearest.map(placeOf) };
}

function isInReach({ scope, node, site }: Candidate, consumer: Place): boolean {
  return scope === 'mesh' || (scope === 'site' ? site === consumer.site : node === consumer.node);
}

function matches(one: Place, { provider, node }: Choice): boolean {
  return one.module === provider && (node === null || one.node === node);
}

function nearestTo(consumer: Place, candidates: readonly Candidate[]): readonly Candidate[] {
  const here = candidates.filter((one) => one.node === consumer.node);
  if (here.length > 0) return here;
  const near = candidates.filter((one) => one.site === consumer.site);
  return near.length > 0 ? near : candidates;
}

function byName(one: Place, other: Place): number {
  return `${one.module}\n${one.node}` < `${other.module}\n${other.node}` ? -1 : 1;
}

function placeOf({ module, node, site }: Place): Place {
  return { module, node, site };
}

export function bindingNameOf(need: Instantiation): string {
  return need.as ?? need.instantiation;
}

export function instantiationsOf({ requires }: Manifest): Instantiation[] {
  return requires.flatMap((need) => ('presence' in need ? [] : [need]));
}

export function provisionOf({ provides }: Manifest, instantiation: string): InstanceProvision | null {
  for (const given of provides) if (!('presence' in given) && given.instantiation === instantiation) return given;
  return null;
}

/** The parameters as the consumer says them, with the facts of its node; or what is wrong, as the end of a sentence. */
export function parametersOf(need: Instantiation, node: NodeFacts): { readonly values: Record<string, string> } | { readonly wrong: string } {
  const values: Record<string, string> = {};
  for (const [name, text] of Object.entries(need.with)) {
    const found = fillIn(text, ofNode(node));
    if ('unknown' in found) return { wrong: `${lackOf(found.unknown, node.name)}for the parameter ${name} of ${bindingNameOf(need)}` };
    values[name] = found.text;
  }
  return { values };
}

/** As the middle of a sentence, with the remedy. */
export function lackOf(reference: string, node: string): string {
  const key = reference === 'node.address' ? 'address' : reference.replace(/^facts\./, '');
  return `needs the fact ${key}, which ${node} does not have (tally node set ${node} ${key}=VALUE), `;
}

/** Null when the provider can make an instance from these; else what is wrong. */
export function misfit(provision: InstanceProvision, values: Readonly<Record<string, string>>): string | null {
  const taken = Object.keys(provision.parameters).sort();
  const strange = Object.keys(values).find((name) => !taken.includes(name));
  if (strange !== undefined)
    return `gives ${provision.instantiation} the parameter ${strange}, which it does not take: it takes ${taken.join(', ') || 'none'}`;
  const missing = Object.entries(provision.parameters).find(([name, one]) => one.default === undefined && !Object.hasOwn(values, name));
  if (missing !== undefined) return `does not say the parameter ${missing[0]} of ${provision.instantiation}`;
  for (const [name, one] of Object.entries(provision.parameters)) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value !== undefined && !isTaken(one.is, value))
      return `gives ${provision.instantiation} the parameter ${name} as ${quoted(value)}: it takes ${TAKES[one.is]}`;
  }
  return null;
}

export const TAKES: Readonly<Record<Parameter['is'], string>> = {
  word: 'a word of at most 200 letters, digits, `.`, `_` and `-`, beginning with a letter or digit',
  number: 'a whole number of at most 15 digits',
  port: 'a port, 1 to 65535',
  host: 'a host name in lower-case letters, as in notes.home',
  text: 'at most 1000 characters on one line',
};

/** Whether a value may stand where the provider uses it: one that has a meaning of its own there would be another's command. */
export function isTaken(is: Parameter['is'], value: string): boolean {
  switch (is) {
    case 'word':
      return /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/.test(value);
    case 'number':
      return /^-?[0-9]{1,15}$/.test(value);
    case 'port':
      return /^[1-9][0-9]{0,4}$/.test(value) && Number(value) <= 65_535;
    case 'host':
      return value.length <= 253 && value.split('.').every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label));
    case 'text':
      return value.length <= 1000 && !/[\p{Cc}\u2028\u2029]/u.test(value);
  }
}

/** On one line, whatever it holds. */
function quoted(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 59)}…` : value);
}

/** What a consumer uses of a binding and is not given, or not where it uses it. */
export function ungiven(manifest: Manifest, binding: string, provision: InstanceProvision): string | null {
  const prefix = `bind.${binding}.`;
  const strange = referencesIn(manifest.resources).find(
    (name) => name.startsWith(prefix) && !Object.hasOwn(provision.gives, name.slice(prefix.length)),
  );
  if (strange !== undefined)
    return `uses \${${strange}}, which ${provision.instantiation} does not give: it gives ${Object.keys(provision.gives).sort().join(', ') || 'nothing'}`;
  const open = referencesIn(manifest.resources.map(withoutPrivateContent)).find(
    (name) => name.startsWith(prefix) && secretOf(provision.gives[name.slice(prefix.length)] ?? '') !== null,
  );
  return open === undefined ? null : `uses \${${open}}, which is a secret: it may stand in the content of a file of mode "0600" and nowhere else`;
}

function withoutPrivateContent(resource: Manifest['resources'][number]): object {
  if (!('file' in resource) || !PRIVATE.test(resource.file.mode)) return resource;
  const { content: _, ...rest } = resource.file;
  return rest;
}

/** The name of the secret that is given, where it is one. */
function secretOf(give: string): string | null {
  return /^\$\{secret\.([^}]+)\}$/.exec(give)?.[1] ?? null;
}

export interface Instance {
  readonly name: string;
  readonly consumer: string;
  /** The first node of the consumer that holds it. */
  readonly consumerNode: NodeFacts;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Whoever is on the same node need not say where that is. */
const NEAR = '127.0.0.1';

/** What the templated resources of an instance may refer to, beside its secrets and the facts of the provider's node. */
export function valuesOfInstance(provision: InstanceProvision, instance: Instance, providerNode: string): Record<string, string> {
  const near = instance.consumerNode.name === providerNode ? NEAR : undefined;
  const address = instance.consumerNode.facts.address ?? near;
  const defaults = Object.entries(provision.parameters).flatMap(([name, one]) => (one.default === undefined ? [] : [[name, one.default] as const]));
  const parameters = { ...Object.fromEntries(defaults), ...instance.parameters };
  return {
    'instance.name': instance.name,
    'instance.consumer': instance.consumer,
    'instance.node': instance.consumerNode.name,
    ...(address === undefined ? {} : { 'instance.address': address }),
    ...Object.fromEntries(Object.entries(parameters).map(([name, value]) => [`with.${name}`, value])),
  };
}

export interface Given {
  readonly values: Readonly<Record<string, string>>;
  /** By key of `gives`, the secret that it is. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Keys whose references nobody can fill in, with the reference. */
  readonly lacking: Readonly<Record<string, string>>;
}

/** What a consumer gets on one of its nodes, by the keys of `gives`. A provider on that very node need have no address. */
export function givenBy(provision: InstanceProvision, instance: Instance, provider: NodeFacts, holder: string): Given {
  const values: Record<string, string> = {};
  const secrets: Record<string, string> = {};
  const lacking: Record<string, string> = {};
  const own = valuesOfInstance(provision, instance, provider.name);
  const near = provider.name === holder ? NEAR : undefined;
  const ofProvider = ofNode(provider);
  for (const [key, text] of Object.entries(provision.gives)) {
    const secret = secretOf(text);
    if (secret !== null) {
      secrets[key] = secret;
      continue;
    }
    const found = fillIn(text, (name) => own[name] ?? ofProvider(name) ?? (name === 'node.address' ? near : undefined));
    if ('unknown' in found) lacking[key] = found.unknown;
    else values[key] = found.text;
  }
  return { values, secrets, lacking };
}

const NAME_MOST = 40;

/**
 * By this name providers make things, so it never changes and is told apart from all others: where the plain one is
 * too long or taken, it ends in some digits of what it is of.
 * @param digest sha256 of the canonical JSON of a value.
 */
export function instanceName(
  of: { readonly consumer: string; readonly binding: string; readonly node: string | null },
  isTaken: (name: string) => boolean,
  digest: (value: unknown) => string,
): string {
  const plain = [of.consumer, of.binding, ...(of.node === null ? [] : [of.node])].join('-');
  if (plain.length <= NAME_MOST && !isTaken(plain)) return plain;
  return `${plain.slice(0, NAME_MOST - 9).replace(/-+$/, '')}-${digest(of).replace('sha256:', '').slice(0, 8)}`;
}
