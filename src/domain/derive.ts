/**
 * From what is placed on one node, what it should hold: ordered resources, references to artifacts and facts filled in.
 * Pure: the same placements always give the same digest, so nothing is sent that would change nothing.
 */
import type { ArtifactRef, DeclaredResource, Feature, SealedSecret } from '../schema/declaration';
import type { InstanceResource, Manifest } from '../schema/manifest';

/** What texts may refer to beside the node's own, by the words between `${` and `}`. */
export interface References {
  readonly values?: Readonly<Record<string, string>>;
  /** Sealed to this node; null: there is nothing to seal it to. */
  readonly secrets?: Readonly<Record<string, SealedSecret | null>>;
}

/** Something that the module makes here for another one. */
interface InstanceFrom extends References {
  readonly name: string;
  readonly resources: readonly InstanceResource[];
}

export interface DerivedFrom extends References {
  readonly module: string;
  /** What made it, for words: the first digits of the commit. */
  readonly commit: string;
  readonly manifest: Manifest;
  /** By the names that the manifest gives them. */
  readonly artifacts: Readonly<Record<string, ArtifactRef>>;
  /** After its own resources. */
  readonly instances?: readonly InstanceFrom[];
}

export interface DeriveInput {
  readonly node: {
    readonly name: string;
    readonly facts: Readonly<Record<string, string>>;
    /** What its host said it reads; null before its first beat: then it is taken to read everything. */
    readonly reads: { readonly versions: readonly number[]; readonly shapes: readonly string[]; readonly features?: readonly string[] } | null;
  };
  readonly version: number;
  readonly modules: readonly DerivedFrom[];
}

export type Derived =
  | {
      readonly kind: 'derived';
      readonly digest: string;
      readonly resources: readonly DeclaredResource[];
      /** Per module: the digest of its own resources, and how many there are. */
      readonly modules: Readonly<Record<string, { readonly digest: string; readonly resources: number }>>;
    }
  /** One line: module, resource and what is missing; and the modules whose fault it is. */
  | { readonly kind: 'notWorkedOut'; readonly reason: string; readonly modules: readonly string[] };

/** @param digest sha256 of the canonical JSON (RFC 8785) of a value. */
export function deriveDeclaration(input: DeriveInput, digest: (value: unknown) => string): Derived {
  const { node, version } = input;
  const ordered = inOrder(input.modules);
  if (node.reads !== null && !node.reads.versions.includes(version)) {
    const reason = `${node.name}'s host reads declarations of version ${node.reads.versions.join(', ') || 'none'} and not ${version}: update the host`;
    return { kind: 'notWorkedOut', reason, modules: ordered.map((from) => from.module) };
  }
  const resources: DeclaredResource[] = [];
  for (const from of ordered) {
    try {
      resources.push(...from.manifest.resources.map((written) => declared(from, from, written, input)));
      for (const instance of from.instances ?? []) {
        const part = readsParts(node.reads) ? { part: instance.name } : {};
        resources.push(...instance.resources.map((written) => ({ ...declared(from, instance, written, input), ...part })));
      }
    } catch (error) {
      if (error instanceof Missing) return { kind: 'notWorkedOut', reason: error.message, modules: [from.module] };
      throw error;
    }
  }
  const clash = findClash(resources);
  if (clash !== null) return clash;
  const modules = Object.fromEntries(
    ordered.map(({ module }) => {
      const own = resources.filter((resource) => resource.module === module);
      return [module, { digest: digest(own), resources: own.length }];
    }),
  );
  return { kind: 'derived', digest: digest(resources), resources, modules };
}

/** Something that the declaration needs and the facts do not hold; it never leaves this file. */
class Missing extends Error {}

/** What others require comes before them, else by name; a circle of requirements is broken at its first name. */
function inOrder(modules: readonly DerivedFrom[]): DerivedFrom[] {
  const waiting = [...modules].sort((a, b) => (a.module < b.module ? -1 : 1));
  const ordered: DerivedFrom[] = [];
  while (waiting.length > 0) {
    const free = waiting.findIndex((one) => !waiting.some((other) => other !== one && requires(one, other)));
    ordered.push(...waiting.splice(Math.max(free, 0), 1));
  }
  return ordered;
}

function requires(one: DerivedFrom, other: DerivedFrom): boolean {
  return one.manifest.requires.some((need) =>
    'presence' in need
      ? need.presence === other.module || other.manifest.provides.some((given) => 'presence' in given && given.presence === need.presence)
      : other.manifest.provides.some((given) => 'instantiation' in given && given.instantiation === need.instantiation),
  );
}

function declared(from: DerivedFrom, references: References, written: InstanceResource, input: DeriveInput): DeclaredResource {
  const { module } = from;
  const resource = filled(from, references, written, input);
  const { name, reads } = input.node;
  if (reads === null) return resource;
  if (!reads.shapes.includes(resource.shape))
    throw new Missing(`${module}: ${resource.id} is a ${resource.shape}, which ${name}'s host cannot read: update the host`);
  const strange = featuresOf(resource).find((feature) => reads.features?.includes(feature) !== true);
  if (strange !== undefined)
    throw new Missing(`${module}: ${resource.id} has ${FEATURE[strange]}, which ${name}'s host cannot read: update the host`);
  return resource;
}

/** A host of before is not told of parts: what fails of one holds up those after it. */
function readsParts(reads: DeriveInput['node']['reads']): boolean {
  return reads === null || reads.features?.includes('parts') === true;
}

const FEATURE: Record<Exclude<Feature, 'parts'>, string> = { secrets: 'a sealed secret', undo: 'an undo', environmentFile: 'an environment file' };

function featuresOf({ shape, spec }: DeclaredResource): Array<keyof typeof FEATURE> {
  if (shape === 'file') return spec.secrets === undefined ? [] : ['secrets'];
  if (shape === 'action') return spec.undo === undefined ? [] : ['undo'];
  return shape === 'service' && spec.environmentFile !== undefined ? ['environmentFile'] : [];
}

function filled(from: DerivedFrom, references: References, written: InstanceResource, input: DeriveInput): DeclaredResource {
  const { module } = from;
  const about = nameOf(written);
  const fill = (text: string): string => substitute(text, input, references, `${module}: ${about}`, null);
  const named = (text: string): string => {
    const name = fill(text);
    if (NAME.test(name) && name.length <= NAME_MOST) return name;
    throw new Missing(`${module}: ${about} comes to be named ${name}: a name is lower-case letters, digits and dashes, at most ${NAME_MOST}`);
  };
  const all = (texts: readonly string[]): string[] => texts.map(fill);
  const artifact = (name: string): ArtifactRef => {
    const found = Object.hasOwn(from.artifacts, name) ? from.artifacts[name] : undefined;
    if (found === undefined) throw new Missing(`${module}: ${about} needs the artifact ${name}, which the build of ${from.commit} did not make`);
    return found;
  };
  if ('file' in written) {
    const { mode, content, from: source } = written.file;
    const path = target(fill(written.file.path), `${module}: ${about}`);
    const secrets: Record<string, SealedSecret> = {};
    const within = content === undefined ? undefined : substitute(content, input, references, `${module}: ${about}`, { mode, secrets });
    const spec = {
      path,
      mode,
      ...(within === undefined ? {} : { content: within }),
      ...(Object.keys(secrets).length === 0 ? {} : { secrets }),
      ...(source === undefined ? {} : { artifact: artifact(source) }),
    };
    return { module, id: `file/${path.slice(1)}`, shape: 'file', spec };
  }
  if ('directory' in written) {
    const path = target(fill(written.directory.path), `${module}: ${about}`);
    return { module, id: `directory/${path.slice(1)}`, shape: 'directory', spec: { path, mode: written.directory.mode } };
  }
  if ('archive' in written) {
    const path = target(fill(written.archive.path), `${module}: ${about}`);
    return { module, id: `archive/${path.slice(1)}`, shape: 'archive', spec: { path, artifact: artifact(written.archive.from) } };
  }
  if ('action' in written) {
    const { run, unless, undo, timeout } = written.action;
    const name = named(written.action.name);
    const spec = { name, run: all(run), unless: all(unless), ...(undo === undefined ? {} : { undo: all(undo) }), timeout };
    return { module, id: `action/${name}`, shape: 'action', spec };
  }
  const { run, env, environmentFile, directory, ready, stopWithin } = written.service;
  const name = named(written.service.name);
  const spec = {
    name,
    run: all(run),
    env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, fill(value)])),
    ...(environmentFile === undefined ? {} : { environmentFile: target(fill(environmentFile), `${module}: ${about}`) }),
    ...(directory === undefined ? {} : { directory: fill(directory) }),
    ...(ready === undefined ? {} : { ready: readiness(ready, fill) }),
    stopWithin,
  };
  return { module, id: `service/${name}`, shape: 'service', spec };
}

const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
const NAME_MOST = 63;

type Ready = NonNullable<Extract<InstanceResource, { service: unknown }>['service']['ready']>;

function readiness(
  { http, tcp, exec, within }: Ready,
  fill: (text: string) => string,
): { http?: string; tcp?: string; exec?: string[]; within: number } {
  return {
    ...(http === undefined ? {} : { http: fill(http) }),
    ...(tcp === undefined ? {} : { tcp: fill(tcp) }),
    ...(exec === undefined ? {} : { exec: exec.map(fill) }),
    within,
  };
}

/** The words by which a reader finds the resource in its manifest. */
function nameOf(written: InstanceResource): string {
  if ('file' in written) return `file ${written.file.path}`;
  if ('directory' in written) return `directory ${written.directory.path}`;
  if ('archive' in written) return `archive ${written.archive.path}`;
  if ('service' in written) return `service ${written.service.name}`;
  return `action ${written.action.name}`;
}

/**
 * Fills in what the mesh knows. `${root}` and the literal `$${` stay for the host, which reads both last; a value
 * that holds `${` itself is made literal, so that no fact can name another. A secret stays for the host too, as
 * `${secret.NAME}`, and what is sealed of it goes beside the content.
 * @param content null: this is no content of a file, so nothing secret may stand in it.
 */
function substitute(
  text: string,
  { node }: DeriveInput,
  { values = {}, secrets = {} }: References,
  about: string,
  content: { readonly mode: string; readonly secrets: Record<string, SealedSecret> } | null,
): string {
  return text.replace(/\$\$\{|\$\{([^}\n]*)\}/g, (whole, name: string | undefined) => {
    if (name === undefined || name === 'root') return whole;
    if (name === 'node.name') return node.name;
    const given = Object.hasOwn(values, name) ? values[name] : undefined;
    if (given !== undefined) return given.replaceAll('${', () => '$${');
    if (Object.hasOwn(secrets, name)) {
      if (content === null || !PRIVATE.test(content.mode))
        throw new Missing(`${about} refers to \${${name}}, which is a secret: it may stand in the content of a file of mode "0600" and nowhere else`);
      const secret = secrets[name] ?? null;
      if (secret === null)
        throw new Missing(`${about} needs the secret ${name}, and ${node.name} has shown no key to seal it to yet: start its host, or update it`);
      const short = name.replace(/^secret\./, '');
      content.secrets[short] = secret;
      return `\${secret.${short}}`;
    }
    const fact = name === 'node.address' ? 'facts.address' : name;
    const key = fact.startsWith('facts.') ? fact.slice('facts.'.length) : null;
    if (key === null) throw new Missing(`${about} refers to \${${name}}, which is no reference`);
    const value = Object.hasOwn(node.facts, key) ? node.facts[key] : undefined;
    if (value === undefined)
      throw new Missing(`${about} needs the fact ${key}, which ${node.name} does not have: tally node set ${node.name} ${key}=VALUE`);
    return value.replaceAll('${', () => '$${');
  });
}

/** No bit for anybody but the owner. */
export const PRIVATE = /^0[0246]00$/;

/** One spelling for one target, so that the same one twice is seen. */
function target(path: string, about: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length === 0 || parts.includes('..')) throw new Missing(`${about} has the target ${path}, which is no path under the root of a node`);
  return `/${parts.join('/')}`;
}

/** Actions of different modules may share a name: each runs by its own condition. */
function targetOf({ module, id, shape, spec }: DeclaredResource): string {
  if ('path' in spec) return `path ${spec.path}`;
  return shape === 'service' ? `service ${spec.name}` : `${module} ${id}`;
}

/** Two resources on one target would undo one another for ever. */
function findClash(resources: readonly DeclaredResource[]): Extract<Derived, { kind: 'notWorkedOut' }> | null {
  const seen = new Map<string, DeclaredResource>();
  for (const resource of resources) {
    const key = targetOf(resource);
    const before = seen.get(key);
    if (before !== undefined) {
      const modules = [...new Set([before.module, resource.module])];
      return {
        kind: 'notWorkedOut',
        reason: `${modules.join(' and ')} both place ${key} (${before.id} and ${resource.id}): unassign one of them`,
        modules,
      };
    }
    seen.set(key, resource);
  }
  return null;
}
