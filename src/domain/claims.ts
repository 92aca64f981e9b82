/**
 * What placements take, and which of them take the same. A claim is singular in its scope; a path, a service and a port
 * that resources show are singular on their node. Nobody lists rivals: two that take the same thing are rivals.
 */
import type { InstanceResource, Scope } from '../schema/manifest';
import { fillIn } from './references';

export interface Claim {
  readonly resource: string;
  readonly scope: Scope;
}

export interface Holder {
  readonly module: string;
  readonly node: string;
  readonly site: string;
  /** Claimed in the manifest, references filled in. */
  readonly claims: readonly Claim[];
  /** What its resources show, as `takenBy` gives it. */
  readonly shows: readonly string[];
  /** Modules that provide what it requires: it may well name their ports. */
  readonly reliesOn: readonly string[];
}

export interface Conflict {
  readonly resource: string;
  /** One line: both claimants, the thing, and what to do. */
  readonly says: string;
}

const LOCAL = /^(127\.\d+\.\d+\.\d+|localhost|0\.0\.0\.0|\[?::1?\]?|)$/;

/**
 * What resources show that they take: `path/…`, `tree/…` (of an archive), `under/…` (each folder above a path),
 * `service/…`, `port/…`. A text with a reference that is not known shows nothing.
 */
export function shownBy(resources: readonly InstanceResource[], known: (name: string) => string | undefined): string[] {
  const filled = (text: string): string | null => {
    const found = fillIn(text, (name) => (name === 'root' ? '' : known(name)));
    return 'text' in found ? found.text : null;
  };
  return [...new Set(resources.flatMap((resource) => shownByOne(resource, filled)))].sort();
}

function shownByOne(resource: InstanceResource, filled: (text: string) => string | null): string[] {
  if ('file' in resource) return pathOf(filled(resource.file.path));
  if ('directory' in resource) return pathOf(filled(resource.directory.path));
  if ('archive' in resource) {
    const shown = pathOf(filled(resource.archive.path));
    return shown.flatMap((one) => (one.startsWith('path/') ? [one, `tree/${one.slice('path/'.length)}`] : [one]));
  }
  if ('action' in resource) return [];
  const { name, ready } = resource.service;
  const service = filled(name);
  return [...(service === null ? [] : [`service/${service}`]), ...portOf(ready, filled)];
}

function pathOf(path: string | null): string[] {
  if (path === null) return [];
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  const above = parts.slice(0, -1).map((_, i) => `under/${parts.slice(0, i + 1).join('/')}`);
  return [`path/${parts.join('/')}`, ...above];
}

/** The port of its own machine that a service is asked at. */
function portOf(ready: { http?: string | undefined; tcp?: string | undefined } | undefined, filled: (text: string) => string | null): string[] {
  const http = ready?.http === undefined ? null : filled(ready.http);
  const tcp = ready?.tcp === undefined ? null : filled(ready.tcp);
  const [, scheme, host, port] = (http === null ? null : /^(https?):\/\/(\[[^\]]*\]|[^:/?#]*)(?::(\d+))?/.exec(http)) ?? [];
  if (host !== undefined && LOCAL.test(host)) return [`port/${port ?? (scheme === 'https' ? 443 : 80)}`];
  const [, at = 'elsewhere', number] = (tcp === null ? null : /^(?:(.*):)?(\d+)$/.exec(tcp)) ?? [];
  return number !== undefined && (at === 'elsewhere' ? !tcp?.includes(':') : LOCAL.test(at)) ? [`port/${number}`] : [];
}

/** What of another's shows collides with these: the same thing, a path inside an archive, an archive around a path. */
export function collidingWith(shows: readonly string[]): string[] {
  return shows.flatMap((one) => {
    if (one.startsWith('under/')) return [`tree/${one.slice('under/'.length)}`];
    if (one.startsWith('tree/')) return [`under/${one.slice('tree/'.length)}`];
    return [one];
  });
}

/** Symmetric but for whose name comes first; null when both can be where they are. */
export function conflictBetween(one: Holder, other: Holder): Conflict | null {
  if (one.module === other.module && one.node === other.node) return null;
  return claimedTwice(one, other) ?? (one.node === other.node ? shownTwice(one, other) : null);
}

function claimedTwice(one: Holder, other: Holder): Conflict | null {
  for (const { resource, scope } of [...one.claims].sort(byResource)) {
    const theirs = other.claims.find((claim) => claim.resource === resource);
    if (theirs === undefined) continue;
    // Who says that it is singular in the whole mesh means the others' as well.
    const widest = WIDTH[scope] >= WIDTH[theirs.scope] ? scope : theirs.scope;
    const isTogether = widest === 'mesh' || (widest === 'site' ? one.site === other.site : one.node === other.node);
    if (!isTogether) continue;
    const apart = widest === 'site' ? `the site ${one.site}` : 'the mesh';
    const where = one.node === other.node ? one.node : apart;
    return {
      resource,
      says: `${namesOf(one, other)} both claim ${resource}, of which ${where} has one: tally unassign ${other.module} ${other.node}`,
    };
  }
  return null;
}

const WIDTH: Record<Scope, number> = { node: 0, site: 1, mesh: 2 };

function byResource(one: Claim, other: Claim): number {
  return one.resource < other.resource ? -1 : 1;
}

function shownTwice(one: Holder, other: Holder): Conflict | null {
  const theirs = new Set([...other.shows, ...other.claims.map((claim) => claim.resource)]);
  const isReliant = one.reliesOn.includes(other.module) || other.reliesOn.includes(one.module);
  const claimed = new Set([...one.claims, ...other.claims].map((claim) => claim.resource));
  const hit = [...collidingWith(one.shows), ...one.claims.map((claim) => claim.resource)]
    .filter((resource) => theirs.has(resource) && !(isReliant && resource.startsWith('port/') && !claimed.has(resource)))
    .sort(byThing)[0];
  if (hit === undefined) return null;
  const remedy = `tally unassign ${other.module} ${other.node}`;
  const [kind, name] = [hit.slice(0, hit.indexOf('/')), hit.slice(hit.indexOf('/') + 1)];
  const both = `${one.module} and ${other.module}`;
  const says: Record<string, string> = {
    path: `${both} both place /${name} on ${one.node}: ${remedy}`,
    tree: `${one.module} places something inside /${name}, which is an archive of ${other.module} on ${one.node}: ${remedy}`,
    under: `${other.module} places something inside /${name}, which is an archive of ${one.module} on ${one.node}: ${remedy}`,
    service: `${both} both run a service ${name} on ${one.node}: ${remedy}`,
  };
  return { resource: thingOf(hit), says: says[kind] ?? `${both} both take ${hit} on ${one.node}: ${remedy}` };
}

/** From either side an archive with something of another's inside is the same thing. */
function thingOf(resource: string): string {
  return resource.startsWith('under/') ? `tree/${resource.slice('under/'.length)}` : resource;
}

function byThing(one: string, other: string): number {
  return thingOf(one) < thingOf(other) ? -1 : 1;
}

function namesOf(one: Holder, other: Holder): string {
  return one.node === other.node ? `${one.module} and ${other.module}` : `${one.module} on ${one.node} and ${other.module} on ${other.node}`;
}
