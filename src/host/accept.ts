/** Whether a declaration is taken: whole or not at all, and never without a reason. */
import { dirname } from 'node:path/posix';
import type { ZodError } from 'zod';
import { canonicalDigest, VerificationError, verify } from '../link';
import { DECLARATION_TYPE, type Declaration, type DeclaredResource, declaration } from '../schema/declaration';
import { envelope } from '../schema/messages';
import { isPrivateMode } from '../schema/primitives';
import { normalTarget, type Root } from './root';
import { REFERENCES } from './secrets';

export interface Expected {
  readonly mesh: string;
  readonly node: string;
  /** Base64 of its SPKI form, or PEM. */
  readonly meshPublicKey: string;
  readonly root: Root;
  /** The last that was accepted. */
  readonly last: { readonly sequence: number; readonly digest: string } | null;
}

export type Acceptance =
  | { readonly kind: 'accepted'; readonly declaration: Declaration }
  /** It was accepted before, and its acknowledgement was lost. */
  | { readonly kind: 'known' }
  | { readonly kind: 'refused'; readonly sequence: number | null; readonly reason: string };

/** @param body a DSSE envelope as it came from the broker. */
export function acceptEnvelope(body: Buffer, expected: Expected): Acceptance {
  let content: unknown;
  try {
    content = JSON.parse(body.toString('utf8'));
  } catch {
    return refused(null, 'what came is not JSON');
  }
  const read = envelope.safeParse(content);
  if (!read.success) return refused(null, `what came is not a signed envelope: ${issueOf(read.error)}`);
  try {
    return acceptDeclaration(verify(read.data, [spkiOf(expected.meshPublicKey)], DECLARATION_TYPE), expected);
  } catch (error) {
    if (error instanceof VerificationError) return refused(null, `its signature does not count: ${error.message}`);
    throw error;
  }
}

/** @param payload of whoever may declare: the signature has been checked, or an operator gave the file. */
export function acceptDeclaration(payload: unknown, { mesh, node, root, last }: Expected): Acceptance {
  const read = declaration.safeParse(payload);
  if (!read.success) return refused(sequenceOf(payload), `it cannot be read here: ${issueOf(read.error)}`);
  const { data } = read;
  const no = (reason: string): Acceptance => refused(data.sequence, reason);
  if (data.mesh !== mesh) return no(`it is for the mesh ${data.mesh} and not for ${mesh}`);
  if (data.node !== node) return no(`it is for the node ${data.node} and not for ${node}`);
  if (data.digest !== canonicalDigest(data.resources)) return no('its digest is not that of its resources');
  if (last !== null && data.sequence === last.sequence && data.digest === last.digest) return { kind: 'known' };
  if (last !== null && data.sequence <= last.sequence)
    return no(`its sequence ${data.sequence} is not above ${last.sequence}, the last one accepted`);
  const wrong = findWrong(data, root);
  return wrong === null ? { kind: 'accepted', declaration: data } : no(wrong);
}

function findWrong({ resources, builds }: Declaration, root: Root): string | null {
  const targets = new Map<string, DeclaredResource>();
  const ids = new Set<string>();
  for (const resource of resources) {
    const { module, id, shape } = resource;
    const wrong = wrongWith(resource, root);
    if (wrong !== null) return `${module}: ${id} ${wrong}`;
    // A command is of a module's build or of nobody.
    if (shape === 'action' && !Object.hasOwn(builds, module)) return `${module}: ${id} is an action of no build`;
    const target = targetOf(resource);
    const before = targets.get(target);
    if (before !== undefined) return `${before.module}: ${before.id} and ${module}: ${id} have the same target`;
    targets.set(target, resource);
    if (ids.has(`${module} ${id}`)) return `${module}: ${id} is there twice`;
    ids.add(`${module} ${id}`);
  }
  return findOverlap(resources);
}

/** Nothing lies in a file; in an archive only what its own module lays there after it: anything else would go with its next version. */
function findOverlap(resources: readonly DeclaredResource[]): string | null {
  const placed = resources.flatMap((resource) => ('path' in resource.spec ? [{ resource, path: normalTarget(resource.spec.path) ?? '/' }] : []));
  const whole = new Map(placed.flatMap(({ resource, path }, order) => (resource.shape === 'directory' ? [] : [[path, { resource, order }]])));
  for (const [order, { resource, path }] of placed.entries()) {
    for (let at = dirname(path); at !== '/'; at = dirname(at)) {
      const over = whole.get(at);
      if (over === undefined) continue;
      const { module, id, shape } = over.resource;
      const isItsOwn = shape === 'archive' && module === resource.module && resource.shape !== 'archive' && over.order < order;
      if (!isItsOwn) return `${resource.module}: ${resource.id} lies in ${module}: ${id}`;
    }
  }
  return null;
}

function wrongWith({ shape, spec }: DeclaredResource, root: Root): string | null {
  if (shape === 'file' && (spec.content === undefined) === (spec.artifact === undefined)) return 'has not exactly one of content and artifact';
  const ofSecrets = shape === 'file' ? wrongWithSecrets(spec) : null;
  if (ofSecrets !== null) return ofSecrets;
  if (shape === 'service' && spec.environmentFile !== undefined && normalTarget(spec.environmentFile) === null)
    return `has the environment file ${spec.environmentFile}, which is none under a root`;
  const path = pathOf(spec);
  if (path === undefined) return null;
  // A service may stand on the root itself.
  if (normalTarget(path) === null)
    return shape === 'service' && normalTarget(`${path}/x`) === '/x' ? null : `has the path ${path}, which is none under a root`;
  try {
    root.locate(path);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Whoever may read the file may read what is filled into it. */
function wrongWithSecrets({ secrets, content, mode }: Extract<DeclaredResource, { shape: 'file' }>['spec']): string | null {
  if (secrets === undefined) return null;
  if (content === undefined) return 'has secrets and no content to fill them into';
  if (!isPrivateMode(mode)) return `holds a secret and has the mode ${mode}: it is at most 0600`;
  const named = new Set([...content.matchAll(REFERENCES)].flatMap(([, name]) => name ?? []));
  const missing = [...named].find((name) => !Object.hasOwn(secrets, name));
  if (missing !== undefined) return `names the secret ${missing}, which does not come with it`;
  const unused = Object.keys(secrets).find((name) => !named.has(name));
  return unused === undefined ? null : `comes with the secret ${unused}, which it does not name`;
}

function pathOf(spec: DeclaredResource['spec']): string | undefined {
  if ('path' in spec) return spec.path;
  return 'directory' in spec ? spec.directory : undefined;
}

/** Actions of different modules may share a name: each runs by its own condition. */
function targetOf({ module, shape, spec }: DeclaredResource): string {
  if ('path' in spec) return `path ${normalTarget(spec.path) ?? spec.path}`;
  return shape === 'service' ? `service ${spec.name}` : `action ${module}/${spec.name}`;
}

function refused(sequence: number | null, reason: string): Acceptance {
  return { kind: 'refused', sequence, reason: reason.replace(/\s*\n\s*/g, ' ').slice(0, 1_000) };
}

function sequenceOf(payload: unknown): number | null {
  if (typeof payload !== 'object' || payload === null || !('sequence' in payload)) return null;
  const { sequence } = payload;
  return typeof sequence === 'number' && Number.isSafeInteger(sequence) && sequence >= 0 ? sequence : null;
}

function issueOf(error: ZodError): string {
  const [issue] = error.issues;
  const at = issue?.path.join('.') ?? '';
  return at === '' ? (issue?.message ?? '') : `${at}: ${issue?.message ?? ''}`;
}

function spkiOf(key: string): string {
  return key.replace(/-----(BEGIN|END) PUBLIC KEY-----/g, '').replace(/\s+/g, '');
}
