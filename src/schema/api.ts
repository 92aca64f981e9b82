import { z } from 'zod';
import { count, maybe, type Read } from './answers';
import { moduleGraph, whyChain } from './graphApi';
import { commit, instant, name } from './primitives';
import { wiring } from './wiringApi';

/**
 * What the HTTP API answers and is asked, under /api/v1. The CLI and the board read exactly these. An error is
 * `{ error }`, one line: what was tried, what is so, what to do next. Times are ISO 8601; a time inside a text stands to
 * the minute (2026-11-29T14:02Z), so that each reader shows it in its own zone.
 */

/** Sent with every answer, so that a CLI of another time says so instead of misreading. */
export const API_VERSION = '1';

export const failure = z.strictObject({ error: z.string() });

/* What is so --------------------------------------------------------------------------------------------------- */

/** Where a line stands in `status`: what needs a person first. */
export const urgency = z.enum(['needs you', 'moving', 'held', 'in step']);

export const moduleRow = z.strictObject({
  module: name,
  urgency,
  /** null before the first comparison. */
  situation: maybe(z.string()),
  verdict: z.enum(['outstanding', 'fit', 'failed']),
  /** The result line, without the module's name. */
  line: z.string(),
  /** The part of the line that matters now: what `status` shows. */
  headline: z.string(),
  reason: z.string(),
  since: maybe(instant),
  /** The verb that helps; null where nothing is needed. */
  remedy: maybe(z.string()),
  head: maybe(commit),
  next: maybe(z.string()),
  counts: z.strictObject({ placements: count, declared: count, applied: count, outstanding: count, stuck: count }),
  isHeld: z.boolean(),
  /** Its neighbours in the graph: the first of each by name, and how many there are. */
  buildsOn: z.strictObject({ first: z.array(name), count }),
  builtOnBy: z.strictObject({ first: z.array(name), count }),
  /** When its newest build came out with the same artifacts as the one before, within the last hour: what builds on it is cut off there. */
  cutOffAt: maybe(instant),
  /** Its effective build was made again with the same inputs and came out otherwise: an observation. */
  notReproducible: z.boolean(),
});

/** One module on one node, failing the same way again and again. */
export const stuckRow = z.strictObject({
  module: name,
  node: name,
  resources: z.array(z.string()),
  count,
  since: maybe(instant),
  message: z.string(),
  headline: z.string(),
  remedy: z.string(),
});

export const nodeRow = z.strictObject({
  node: name,
  site: z.string(),
  /** never seen, up, away: a word, never a verdict. */
  presence: z.enum(['never seen', 'up', 'away']),
  lastBeatAt: maybe(instant),
  /** What was last sent against what would be sent now. */
  sending: z.enum(['up to date', 'out of date', 'never told', 'not worked out', 'nothing to tell']),
  /** Why it needs a person (a refusal, a changed key, a send that fails, what cannot be worked out); null where it does not. */
  trouble: maybe(z.strictObject({ reason: z.string(), since: maybe(instant), remedy: z.string() })),
  placements: count,
  applied: count,
});

export const builderRow = z.strictObject({
  builder: name,
  platforms: z.array(z.string()),
  presence: z.enum(['up', 'away']),
  lastBeatAt: instant,
  busy: z.array(z.strictObject({ request: z.string(), module: maybe(name), step: z.string(), since: instant })),
});

/** What is wrong with the mesh itself. */
export const alarm = z.strictObject({ what: z.string(), since: maybe(instant), remedy: z.string() });

const meshSummary = z.strictObject({
  mesh: z.string(),
  modules: count,
  inStep: count,
  nodes: count,
  away: count,
  awaySince: maybe(instant),
  notWorkedOut: count,
});

export const statusAnswer = z.strictObject({
  now: instant,
  /** True when nothing waits, is wrong or needs a person; what is held is a decision and counts as in step. */
  inStep: z.boolean(),
  summary: meshSummary,
  modules: z.array(moduleRow),
  stuck: z.array(stuckRow),
  nodes: z.array(nodeRow),
  builders: z.array(builderRow),
  alarms: z.array(alarm),
  /** Followed by `module%2F<name>` it is the page of a module's workflow in the Temporal UI; null where none is known. */
  workflows: maybe(z.string()),
});

/** What /api/v1/events sends after the first whole status: only the rows that changed. */
export const statusChange = z.strictObject({
  now: instant,
  inStep: z.boolean(),
  summary: meshSummary,
  modules: z.array(moduleRow),
  removedModules: z.array(z.string()),
  stuck: z.array(stuckRow),
  nodes: z.array(nodeRow),
  builders: z.array(builderRow),
  alarms: z.array(alarm),
});

export const buildRow = z.strictObject({
  build: z.string(),
  commit,
  try: z.number().int().positive(),
  state: z.enum(['requested', 'published', 'taken', 'answered', 'cancelled']),
  verdict: z.enum(['outstanding', 'fit', 'failed']),
  isEffective: z.boolean(),
  reason: maybe(z.string()),
  step: maybe(z.string()),
  requestedAt: instant,
  answeredAt: maybe(instant),
  builtBy: maybe(z.string()),
  askedBy: maybe(z.string()),
  /** Another build of the same closure made other artifacts: an observation. */
  notReproducible: z.boolean(),
  /** An operator asked for it to be built twice. */
  isCheck: z.boolean(),
  /** What the second of the two made otherwise; null where it was built once. */
  differing: maybe(z.array(z.strictObject({ artifact: z.string(), file: z.string() }))),
  /** Digests in the registry. */
  provenance: maybe(z.string()),
  log: maybe(z.string()),
  artifacts: z.array(z.strictObject({ name: z.string(), kind: z.string(), digest: z.string(), size: count })),
});

export const placementRow = z.strictObject({
  module: name,
  node: name,
  declared: maybe(z.strictObject({ build: z.string(), commit })),
  applied: maybe(z.strictObject({ build: z.string(), commit: maybe(commit), at: maybe(instant) })),
  isApplied: z.boolean(),
  outstandingSince: maybe(instant),
  failing: maybe(z.strictObject({ resources: z.array(z.string()), count, since: maybe(instant), message: z.string() })),
});

const intentRow = z.strictObject({
  verb: z.string(),
  module: maybe(z.string()),
  node: maybe(z.string()),
  build: maybe(z.string()),
  who: z.string(),
  why: z.string(),
  at: instant,
});

export const moduleAnswer = z.strictObject({
  now: instant,
  row: moduleRow,
  repository: z.string(),
  ref: z.string(),
  addedAt: instant,
  readAt: maybe(instant),
  hasWebhook: z.boolean(),
  /** What its manifest says about declaring, else the mesh's default. */
  declare: z.strictObject({ policy: z.enum(['auto', 'ask']), from: z.enum(['manifest', 'mesh']) }),
  hold: maybe(z.strictObject({ by: z.string(), why: z.string(), at: instant, build: maybe(z.string()) })),
  placements: z.array(placementRow),
  /** Newest first, at most 20. */
  builds: z.array(buildRow),
  problems: z.array(z.string()),
  notes: z.array(z.string()),
  graph: moduleGraph,
  wiring,
  /** Newest first, at most 20. */
  intents: z.array(intentRow),
  temporalUrl: maybe(z.string()),
});

export const whyAnswer = z.strictObject({
  module: name,
  line: z.string(),
  situation: maybe(z.string()),
  next: maybe(z.string()),
  reason: z.string(),
  since: maybe(instant),
  comparedAt: maybe(instant),
  remedy: maybe(z.string()),
  inStep: z.boolean(),
  /** What of its source and its inputs differs, and by which edges that reaches it. */
  chain: z.array(whyChain),
  /** One sentence a fact, in the order in which they were weighed; what stands in the reason or the chain is not said again. */
  facts: z.array(z.string()),
});

export const moduleList = z.strictObject({
  modules: z.array(
    z.strictObject({
      module: name,
      repository: z.string(),
      ref: z.string(),
      head: maybe(commit),
      situation: maybe(z.string()),
      placements: count,
      hasWebhook: z.boolean(),
    }),
  ),
});

export const nodeAnswer = z.strictObject({
  now: instant,
  row: nodeRow,
  facts: z.record(z.string(), z.string()),
  addedAt: instant,
  /** Taken from the first beat over the node's own account. */
  publicKey: maybe(z.string()),
  /** To what its secrets are sealed, with the same trust; null: its host has shown none. */
  sealKey: maybe(z.string()),
  /** A later, different key that was refused. */
  keyRefused: maybe(z.string()),
  epochs: count,
  epochSince: maybe(instant),
  hostVersion: maybe(z.string()),
  shapes: z.array(z.string()),
  sent: maybe(z.strictObject({ sequence: count, digest: z.string(), at: maybe(instant) })),
  received: maybe(z.strictObject({ sequence: count, digest: maybe(z.string()) })),
  applied: maybe(z.strictObject({ sequence: count, digest: maybe(z.string()) })),
  placements: z.array(placementRow),
  wiring,
  /** Newest first, at most 10. */
  reports: z.array(
    z.strictObject({
      epoch: z.string(),
      number: count,
      receivedAt: instant,
      failures: z.array(z.string()),
      changes: count,
      refused: maybe(z.string()),
    }),
  ),
});

export const nodeList = z.strictObject({ nodes: z.array(nodeRow) });

export const logAnswer = z.strictObject({
  request: z.string(),
  kind: z.enum(['inspect', 'build']),
  commit,
  state: z.enum(['requested', 'published', 'taken', 'answered', 'cancelled']),
  verdict: maybe(z.string()),
  lines: z.array(z.string()),
  /** Ask again with `from=next` for what comes after. */
  next: z.string(),
  /** True when nothing more will come. */
  isWhole: z.boolean(),
  note: maybe(z.string()),
});

export const doctorAnswer = z.strictObject({
  isWell: z.boolean(),
  checks: z.array(z.strictObject({ what: z.string(), isWell: z.boolean(), says: z.string(), remedy: maybe(z.string()) })),
});

export const whoAnswer = z.strictObject({ name: z.string() });

export const meshAnswer = z.strictObject({
  mesh: z.string(),
  /** Whether fit builds of modules that do not say so themselves declare themselves or wait. */
  declareDefault: z.enum(['auto', 'ask']),
  /** Who said that last; null: nobody has. */
  said: maybe(z.strictObject({ who: z.string(), why: z.string(), at: instant })),
});

/* What is asked ------------------------------------------------------------------------------------------------ */

const why = z.string().trim().min(1, 'say why: --why "…"').max(500);
const optionalWhy = z.string().trim().max(500).default('');
const buildRef = z
  .string()
  .min(4)
  .max(64)
  .regex(/^[A-Za-z0-9-]+$/, 'a build is an id or the start of a commit');

/** `build` names a build by its id or the start of its commit: needed by rollback, allowed by declare and cancel. */
export const verbBody = {
  build: z.strictObject({ why: optionalWhy, again: z.boolean().default(false), check: z.boolean().default(false) }),
  declare: z.strictObject({ why, build: buildRef.optional() }),
  hold: z.strictObject({ why }),
  release: z.strictObject({ why }),
  rollback: z.strictObject({ why, build: buildRef.optional() }),
  cancel: z.strictObject({ why, build: buildRef.optional() }),
} as const;

export const buildBehindBody = z.strictObject({ behind: z.literal(true) });

export const pushBody = z
  .strictObject({ node: name.optional(), behind: z.boolean().default(false), again: z.boolean().default(false), why: optionalWhy })
  .refine((p) => p.node !== undefined || p.behind || p.again, 'name a node, or say --behind or --again');

export const addModuleBody = z.strictObject({
  module: name,
  repository: z
    .string()
    .min(1)
    .max(1_000)
    .refine((r) => !/\p{Cc}/u.test(r) && !r.startsWith('-'), 'a repository is an address or a path that git can read'),
  ref: z
    .string()
    .min(1)
    .max(250)
    .regex(/^[^\s~^:?*[\\-][^\s~^:?*[\\]*$/, 'a ref is a branch or tag name, as in main')
    .default('main'),
});

export const removeBody = z.strictObject({ why });

export const meshDefaultBody = z.strictObject({ policy: z.enum(['auto', 'ask']), why: optionalWhy });

const factKey = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]*$/, 'a fact is KEY=VALUE with a key of lower-case letters, digits, dots and dashes, as in meshboard.port=8081')
  .max(100);

export const addNodeBody = z.strictObject({ node: name, site: name.default('home'), facts: z.record(factKey, z.string().max(1_000)).default({}) });

/** Merged into the facts that are there; an empty value takes a fact away. */
export const setFactsBody = z.strictObject({
  facts: z.record(factKey, z.string().max(1_000)).refine((f) => Object.keys(f).length > 0, 'name at least one fact, as in meshboard.port=8081'),
});

/** `PROVIDER`, `PROVIDER@NODE`, or `REQUIREMENT=` before either: which of several providers is meant. */
const use = z
  .string()
  .regex(/^([a-z0-9-]+=)?[a-z0-9-]+(@[a-z0-9-]+)?$/, 'say PROVIDER, PROVIDER@NODE or REQUIREMENT=PROVIDER, as in db=postgres@alpha')
  .transform((text) => {
    const [, requirement = null, provider = '', node = null] = /^(?:([a-z0-9-]+)=)?([a-z0-9-]+)(?:@([a-z0-9-]+))?$/.exec(text) ?? [];
    return { requirement, provider, node };
  });

export const assignBody = z.strictObject({ module: name, node: name, use: z.array(use).max(20).default([]), why: optionalWhy });

export const unassignBody = z.strictObject({ module: name, node: name, why: optionalWhy });

export const loginBody = z.strictObject({ token: z.string().min(1).max(200) });

/** What a verb answers: one line for a person. */
export const doneAnswer = z.strictObject({
  says: z.string(),
  /** False when the intent is written down and Temporal, which carries it out, does not answer. */
  isUnderWay: z.boolean(),
});

export const addedNodeAnswer = z.strictObject({ says: z.string(), node: name, credentialFile: z.string(), next: z.string() });

export const webhookAnswer = z.strictObject({
  module: name,
  secret: z.string(),
  addresses: z.strictObject({ github: z.string(), gitea: z.string(), gitlab: z.string() }),
});

export const behindAnswer = z.strictObject({ says: z.string(), modules: z.array(name), nodes: z.array(name) });

export type Urgency = z.infer<typeof urgency>;
export type ModuleRow = Read<z.infer<typeof moduleRow>>;
export type StuckRow = Read<z.infer<typeof stuckRow>>;
export type NodeRow = Read<z.infer<typeof nodeRow>>;
export type BuilderRow = Read<z.infer<typeof builderRow>>;
export type Alarm = Read<z.infer<typeof alarm>>;
export type StatusAnswer = Read<z.infer<typeof statusAnswer>>;
export type StatusChange = Read<z.infer<typeof statusChange>>;
export type BuildRow = Read<z.infer<typeof buildRow>>;
export type PlacementRow = Read<z.infer<typeof placementRow>>;
export type ModuleAnswer = Read<z.infer<typeof moduleAnswer>>;
export type WhyAnswer = Read<z.infer<typeof whyAnswer>>;
export type ModuleList = Read<z.infer<typeof moduleList>>;
export type NodeAnswer = Read<z.infer<typeof nodeAnswer>>;
export type NodeList = Read<z.infer<typeof nodeList>>;
export type LogAnswer = Read<z.infer<typeof logAnswer>>;
export type DoctorAnswer = Read<z.infer<typeof doctorAnswer>>;
export type MeshAnswer = Read<z.infer<typeof meshAnswer>>;
export type DoneAnswer = Read<z.infer<typeof doneAnswer>>;
export type AddedNodeAnswer = Read<z.infer<typeof addedNodeAnswer>>;
export type WebhookAnswer = Read<z.infer<typeof webhookAnswer>>;
export type BehindAnswer = Read<z.infer<typeof behindAnswer>>;
