/**
 * Whether a module may be where it is placed: what it claims is free, what it requires is provided. Decided and written
 * down under one lock, by the same transaction that places or declares it.
 */
import {
  bindingNameOf,
  type Candidate,
  type Choice,
  givenBy,
  lackOf,
  misfit,
  parametersOf,
  provisionOf,
  type Resolved,
  resolve,
  ungiven,
} from '../domain/provisioning';
import { type NodeFacts, referencesIn } from '../domain/references';
import type { Manifest } from '../schema/manifest';
import { type Bound, dropOtherBindings, plainNameOf, writeBindings } from './bindings';
import type { Db } from './db';
import { instancesOf, placeKey } from './instances';
import { clashAmong, findRivals, findRivalsOfMakers, holderOf, type Made, makerOf, writeHolders, writeShows } from './rivals';
import { type Placed, readKnown, readNodes, readPlacements, readSurroundings, type Surroundings } from './surroundings';

/** One number for this purpose in the whole database. */
const LOCK = 7_254_822;

interface Settling {
  readonly module: string;
  readonly manifest: Manifest;
  readonly nodes: readonly string[];
  /** A placement: nothing of it runs yet, so nothing is kept beside what is settled. */
  readonly isNew: boolean;
}

export type Settled =
  | { readonly kind: 'ready' }
  /** Something is made first; nobody need do anything. */
  | { readonly kind: 'waits'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

/** Taken before any node is locked, so that nobody waits in a circle. */
export async function lockProvisioning(tx: Db): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [LOCK]);
}

export function isWoven({ requires, provides, claims }: Manifest): boolean {
  return requires.length + provides.length + claims.length > 0;
}

/** Nodes on which something is written when this module is settled here: those of all that may provide for it, or does. */
export async function nodesAround(tx: Db, module: string, { requires }: Manifest, nodes: readonly string[]): Promise<string[]> {
  const names = requires.map((need) => ('presence' in need ? need.presence : need.instantiation));
  const rows = await tx.query<{ node: string }>(
    `select unnest($2::text[]) as node
     union select node from offer where name = any ($3)
     union select provider_node from binding where module = $1 and node = any ($2)
     union select node from binding where provider = $1 and provider_node = any ($2)`,
    [module, nodes, names],
  );
  return rows.map((row) => row.node);
}

/** Of a module that neither requires nor provides nor claims anything, and never did: only what it shows can be another's. */
export async function settlePlain(tx: Db, { module, manifest, nodes }: Omit<Settling, 'isNew'>): Promise<Map<string, Settled>> {
  const here = await readNodes(tx, module, nodes);
  const holders = here.map((node) => holderOf(module, manifest, node, [], []));
  const refused = await findRivals(tx, holders);
  await writeShows(
    tx,
    holders.filter((holder) => !refused.has(holder.node)),
    new Set(),
  );
  return new Map(
    here.map(({ name }): [string, Settled] => {
      const reason = refused.get(name);
      return [name, reason === undefined ? { kind: 'ready' } : { kind: 'refused', reason }];
    }),
  );
}

/** What each node's answer is, of those that the module is placed on. Of a refused one nothing is written. */
export async function settle(tx: Db, { module, manifest, nodes: named, isNew }: Settling): Promise<Map<string, Settled>> {
  const here = await readNodes(tx, module, named);
  const nodes = here.map((node) => node.name);
  const around = await readSurroundings(tx, module, manifest, nodes);
  const refused = new Map<string, string>();
  const found = here.map((node) => bindingsOf(module, manifest, node, around));
  const known = found.some((one) => one.wrong !== null) ? await readKnown(tx, module, manifest) : null;
  const asked = found.flatMap(({ node, bound, wrong }) => {
    if (wrong !== null) refused.set(node, wrong(known ?? new Map()));
    return bound;
  });
  const bound = await fitted(tx, manifest, here, asked, refused);
  const made = await instancesOf(
    tx,
    nodes.map((node) => ({ module, node })),
  );
  await refuseWhatIsNeeded(tx, module, manifest, here, made, refused);
  const reliesOn = [...new Set(bound.map((one) => one.provider))];
  const holders = here
    .filter((node) => !refused.has(node.name))
    .map((node) => holderOf(module, manifest, node, made.get(placeKey(module, node.name)) ?? [], reliesOn));
  for (const [node, says] of await findRivals(tx, holders)) refused.set(node, says);

  const standing = bound.filter((one) => !refused.has(one.node));
  const waits = await writeBindings(tx, standing);
  const ready = nodes.filter((node) => !refused.has(node) && (isNew || !waits.has(node)));
  await dropOtherBindings(tx, module, standing, ready);
  await writeHolders(
    tx,
    holders.filter((holder) => !refused.has(holder.node)),
    new Set(nodes.filter((node) => !ready.includes(node))),
  );
  await writeOffers(tx, module, manifest, ready);
  await refreshProviders(tx, standing);
  return new Map(
    here.map(({ name }): [string, Settled] => {
      const no = refused.get(name);
      if (no !== undefined) return [name, { kind: 'refused', reason: no }];
      const reason = waits.get(name);
      return [name, reason === undefined ? { kind: 'ready' } : { kind: 'waits', reason }];
    }),
  );
}

type Known = ReadonlyMap<string, readonly string[]>;

interface Found {
  readonly node: string;
  readonly bound: readonly Bound[];
  /** Said with the modules that would provide what is missing. */
  readonly wrong: ((known: Known) => string) | null;
}

function bindingsOf(module: string, manifest: Manifest, node: NodeFacts, around: Surroundings): Found {
  const bound: Bound[] = [];
  for (const need of manifest.requires) {
    const kind = 'presence' in need ? 'presence' : 'instantiation';
    const wants = 'presence' in need ? need.presence : need.instantiation;
    const name = 'presence' in need ? need.presence : bindingNameOf(need);
    const candidates = around.offers.filter((offer) => offer.kind === kind && offer.name === wants);
    const choice = choiceOf(around, node.name, name, candidates);
    const before = around.before.get(`${node.name} ${kind} ${name}`) ?? null;
    const resolved = resolve({ module, node: node.name, site: node.site }, candidates, choice, before);
    if (resolved.kind !== 'satisfied') {
      const wrong = (known: Known): string => unsatisfied(module, node.name, { name, wants, choice }, resolved, known.get(`${kind} ${wants}`) ?? []);
      return { node: node.name, bound: [], wrong };
    }
    const parameters = 'presence' in need ? { values: {} } : parametersOf(need, node);
    if ('wrong' in parameters) return { node: node.name, bound: [], wrong: () => `${module} ${parameters.wrong}` };
    const { module: provider, node: providerNode } = resolved.provider;
    bound.push({ module, node: node.name, kind, name, wants, provider, providerNode, parameters: parameters.values, isOwn: false });
  }
  return { node: node.name, bound, wrong: null };
}

/** What an operator chose by requirement, else a provider that was chosen for whatever it provides. */
function choiceOf({ choices }: Surroundings, node: string, name: string, candidates: readonly Candidate[]): Choice | null {
  const named = choices.get(`${node} ${name}`);
  if (named !== undefined) return named;
  const any = candidates.map((one) => choices.get(`${node} any:${one.module}`)).find((one) => one !== undefined);
  return any ?? null;
}

interface Need {
  readonly name: string;
  readonly wants: string;
  readonly choice: Choice | null;
}

type Unsatisfied = Exclude<Resolved, { kind: 'satisfied' }>;

function unsatisfied(module: string, node: string, { name, wants, choice }: Need, resolved: Unsatisfied, known: readonly string[]): string {
  const what = name === wants ? wants : `${wants} (as ${name})`;
  if (resolved.kind === 'several') {
    const names = resolved.candidates.map((one) => `${one.module} on ${one.node}`);
    const [first] = resolved.candidates;
    const use = first === undefined ? '' : `${first.module}@${first.node}`;
    return `${module} requires ${what}, which ${names.join(' and ')} provide: choose one, as in tally assign ${module} ${node} --use ${name}=${use}`;
  }
  if (choice !== null) {
    const chosen = choice.node === null ? choice.provider : `${choice.provider} on ${choice.node}`;
    return `${module} requires ${what}, for which ${chosen} was chosen and which it does not provide within reach of ${node}: choose another with --use`;
  }
  const [first] = known;
  const remedy = first === undefined ? 'no module that is tracked provides it' : `${known.join(' or ')} would, as in tally assign ${first} NODE`;
  return `${module} requires ${what}, which nothing within reach of ${node} provides: ${remedy}`;
}

/** With what each provider says of its instances; it must be able to make them, and give what is used of them. */
async function fitted(
  tx: Db,
  manifest: Manifest,
  here: readonly NodeFacts[],
  asked: readonly Bound[],
  refused: Map<string, string>,
): Promise<Bound[]> {
  const places = placesOf(asked);
  const providers = new Map((await readPlacements(tx, places)).map((one) => [placeKey(one.module, one.node.name), one]));
  const instances = await instancesOf(tx, places);
  const nodes = new Map(here.map((node) => [node.name, node]));
  const fresh: Array<{ readonly bound: Bound; readonly at: Placed; readonly instance: Made }> = [];
  const bindings = asked.map((one) => {
    const provider = providers.get(placeKey(one.provider, one.providerNode));
    const node = nodes.get(one.node);
    if (one.kind === 'presence' || refused.has(one.node) || node === undefined) return one;
    const provision = provider === undefined ? null : provisionOf(provider.manifest, one.wants);
    if (provider === undefined || provision === null) {
      refused.set(one.node, `${one.provider} on ${one.providerNode} does not provide ${one.wants} any more`);
      return one;
    }
    const bound = { ...one, isOwn: provision.per === 'node' };
    const made = instances.get(placeKey(one.provider, one.providerNode)) ?? [];
    const own = bound.isOwn ? one.node : null;
    const before = made.find((other) => other.consumer === one.module && other.binding === one.name && other.ownNode === own);
    const name = before?.name ?? plainNameOf(bound);
    const instance: Made = { name, consumer: one.module, consumerNode: node, parameters: one.parameters, wants: one.wants };
    const beside = fresh.filter(({ at }) => at === provider).map((other) => other.instance);
    const others = [...made, ...beside].filter((other) => other.name !== instance.name);
    const wrong =
      wrongWith(bound, manifest, node, provider, instance) ?? clashAmong(provider.module, provider.manifest, provider.node, [...others, instance]);
    if (wrong === null) fresh.push({ bound, at: provider, instance });
    else refused.set(one.node, wrong);
    return bound;
  });
  const makers = fresh.map(({ at, instance }) => makerOf(at.module, at.manifest, at.node, instance));
  const rivals = await findRivalsOfMakers(tx, makers);
  for (const [i, says] of rivals) refused.set(fresh[i]?.bound.node ?? '', says);
  return bindings;
}

function wrongWith(bound: Bound, manifest: Manifest, node: NodeFacts, provider: Placed, instance: Made): string | null {
  const provision = provisionOf(provider.manifest, bound.wants);
  if (provision === null) return null;
  const wrong = misfit(provision, bound.parameters) ?? ungiven(manifest, bound.name, provision);
  if (wrong !== null) return `${bound.module} ${wrong}`;
  const [lacking] = Object.values(givenBy(provision, instance, provider.node, bound.node).lacking);
  if (lacking !== undefined) return `${bound.provider} ${lackOf(lacking, bound.providerNode)}to give ${bound.wants}`;
  const templates = referencesIn(provision.resources).includes('instance.address') && node.facts.address === undefined;
  if (templates && bound.providerNode !== bound.node)
    return `${bound.module} ${lackOf('node.address', bound.node)}to have ${bound.provider} make ${bound.wants}`;
  return null;
}

/** A provider that moves on must go on providing what is held of it, and giving what is used of that. */
async function refuseWhatIsNeeded(
  tx: Db,
  module: string,
  manifest: Manifest,
  here: readonly NodeFacts[],
  made: ReadonlyMap<string, readonly Made[]>,
  refused: Map<string, string>,
): Promise<void> {
  const held = await tx.query<Held>(
    `select b.provider_node as node, b.module as consumer, b.node as on, b.kind, b.name, b.wants, i.parameters
     from binding b left join instance i on i.id = b.instance_id where b.provider = $1 and b.provider_node = any ($2) order by b.module, b.node`,
    [module, here.map((node) => node.name)],
  );
  const consumers = await readPlacements(
    tx,
    held.flatMap(({ kind, consumer, on }) => (kind === 'presence' ? [] : [{ module: consumer, node: on }])),
  );
  const manifests = new Map(consumers.map((one) => [placeKey(one.module, one.node.name), one.manifest]));
  for (const one of held) {
    const wrong = refused.has(one.node) ? null : wrongFor(one, module, manifest, manifests.get(placeKey(one.consumer, one.on)));
    if (wrong !== null) refused.set(one.node, wrong);
  }
  for (const node of here) {
    const clash = refused.has(node.name) ? null : clashAmong(module, manifest, node, made.get(placeKey(module, node.name)) ?? []);
    if (clash !== null) refused.set(node.name, clash);
  }
}

interface Held {
  readonly node: string;
  readonly consumer: string;
  readonly on: string;
  readonly kind: string;
  readonly name: string;
  readonly wants: string;
  readonly parameters: Record<string, string> | null;
}

function wrongFor(
  { consumer, on, kind, name, wants, parameters }: Held,
  module: string,
  manifest: Manifest,
  theirs: Manifest | undefined,
): string | null {
  const isOffered = manifest.provides.some((given) =>
    'presence' in given ? kind === 'presence' && given.presence === wants : kind !== 'presence' && given.instantiation === wants,
  );
  if (!isOffered) return `${module} would provide ${wants} no longer, which ${consumer} on ${on} requires: tally unassign ${consumer} ${on}`;
  const provision = kind === 'presence' ? null : provisionOf(manifest, wants);
  if (provision === null || parameters === null) return null;
  const wrong = misfit(provision, parameters) ?? (theirs === undefined ? null : ungiven(theirs, name, provision));
  return wrong === null ? null : `${consumer} on ${on} ${wrong}, as ${module} would have it from now on`;
}

async function writeOffers(tx: Db, module: string, { provides }: Manifest, nodes: readonly string[]): Promise<void> {
  const offers = provides.map((given) =>
    'presence' in given
      ? { kind: 'presence', name: given.presence, scope: given.scope }
      : { kind: 'instantiation', name: given.instantiation, scope: given.scope },
  );
  await tx.query(
    `delete from offer o where o.module = $1 and o.node = any ($2)
       and not exists (select from jsonb_to_recordset($3::jsonb) n (kind text, name text, scope text) where (n.kind, n.name, n.scope) = (o.kind, o.name, o.scope))`,
    [module, nodes, JSON.stringify(offers)],
  );
  if (offers.length === 0) return;
  await tx.query(
    `insert into offer (module, node, kind, name, scope)
     select $1, node, kind, name, scope from unnest($2::text[]) node, jsonb_to_recordset($3::jsonb) n (kind text, name text, scope text) on conflict do nothing`,
    [module, nodes, JSON.stringify(offers)],
  );
}

/** What a provider takes on its node follows what it makes there. */
export async function refreshProviders(tx: Db, bound: ReadonlyArray<Pick<Bound, 'kind' | 'provider' | 'providerNode'>>): Promise<void> {
  const places = placesOf(bound);
  const providers = await readPlacements(tx, places);
  const made = await instancesOf(tx, places);
  const holders = providers.map(({ module, node, manifest }) => holderOf(module, manifest, node, made.get(placeKey(module, node.name)) ?? [], []));
  await writeShows(tx, holders, new Set());
}

function placesOf(bound: ReadonlyArray<Pick<Bound, 'kind' | 'provider' | 'providerNode'>>): Array<{ module: string; node: string }> {
  const asked = bound.filter((one) => one.kind === 'instantiation').map((one) => ({ module: one.provider, node: one.providerNode }));
  return [...new Map(asked.map((place) => [placeKey(place.module, place.node), place])).values()];
}
