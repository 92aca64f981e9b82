/** What the API answers about the graph: its edges with their evidence, what would be built because of what, and what an artifact proves. */
import { z } from 'zod';
import { count, maybe, type Read } from './answers';
import { commit, instant, name } from './primitives';

const language = z.string();

/** One place in the code of a module where it imports a name that another module exports. */
const evidence = z.strictObject({
  language,
  name: z.string(),
  /** The artifact of the other module that carries the name. */
  artifact: z.string(),
  file: z.string(),
  line: count,
  isTest: z.boolean(),
});

/** `module` builds on `input`. */
export const graphEdge = z.strictObject({
  module: name,
  input: name,
  /** Only tests import it: it makes stale, it orders nothing. */
  isTest: z.boolean(),
  /** The first names that are imported, code before tests; `names` counts all. */
  evidence: z.array(evidence).min(1),
  names: count,
});

export const graphAnswer = z.strictObject({
  now: instant,
  /** The module that was asked about; null: all. */
  module: maybe(name),
  /** What the module builds on, at whatever distance, or what builds on it; all of both without a module. */
  direction: z.enum(['outbound', 'inbound']),
  modules: z.array(z.strictObject({ module: name, situation: maybe(z.string()), inStep: z.boolean() })),
  edges: z.array(graphEdge),
  /** As a → b → a: first and last the same. */
  cycles: z.array(z.array(name)),
});

export const planStep = z.strictObject({
  module: name,
  /** inspect, build and judge make something; declare and ask write to nodes; send tells a node; wait is for something else first. */
  what: z.enum(['inspect', 'build', 'judge', 'declare', 'ask', 'wait', 'send']),
  commit: maybe(commit),
  because: z.string(),
  nodes: z.array(name),
  /** What makes something: 1 for what can start now, more for what waits for a lower one. 0: it waits for nothing that is made. */
  level: count,
  /** Modules of this plan that are built before it. */
  after: z.array(name),
  /** Modules whose artifacts may come out the same: then this step is cut off. Empty: it is sure. */
  unless: z.array(name),
  /** What follows a fit build: it is declared, a person is asked, or the module is held; null where the step is no build or is on no node. */
  afterwards: maybe(z.enum(['declare', 'ask', 'held'])),
});

export const planAnswer = z.strictObject({
  now: instant,
  /** The module whose change is supposed; null: what is so. */
  supposed: maybe(name),
  /** In the order in which they would happen. */
  steps: z.array(planStep),
  /** Nodes whose declaration differs from what they were last sent, and those the mesh cannot work out. */
  nodes: z.array(
    z.strictObject({ node: name, state: z.enum(['out of date', 'never told', 'not worked out']), reason: z.string(), since: maybe(instant) }),
  ),
  /** Through these nothing is built. */
  cycles: z.array(z.array(name)),
  /** Modules that are not in step and of which no step is about to change that: a person has to, or has decided so. */
  standing: z.array(z.strictObject({ module: name, situation: z.string() })),
});

/** One reason why a module is not in step with its inputs, as a chain of edges: `kind` says of what sort. */
export const whyChain = z.strictObject({
  kind: z.enum(['source', 'moved', 'appeared', 'gone', 'waiting', 'missing', 'cycle', 'bootstrap', 'conflict', 'unparsed']),
  /** From the module to what differs. */
  path: z.array(z.strictObject({ module: name, file: maybe(z.string()), line: maybe(count) })),
  /** The whole in one line. */
  says: z.string(),
});

const codePlace = { file: z.string(), line: count };

/** What `module show` says of the module in the graph. */
export const moduleGraph = z.strictObject({
  /**
   * Names that it exports, and the artifact that carries each. `awaited`: the head exports it, and the effective build does not carry it. `kept`: the
   * effective build carries it, and the head exports it no more, or by another artifact.
   */
  exports: z.array(z.strictObject({ language, name: z.string(), artifact: z.string(), ...codePlace, state: z.enum(['carried', 'kept', 'awaited']) })),
  inputs: z.array(graphEdge),
  dependants: z.array(graphEdge),
  /** Through build edges back to itself, first and last the same: its next change is not built. null: it lies in none. */
  cycle: maybe(z.array(name)),
  /** Imports that no module exports. */
  outside: count,
  unknown: z.array(z.strictObject({ kind: z.enum(['unparsed', 'computed']), ...codePlace, reason: z.string() })),
});

const finding = z.strictObject({ isRight: z.boolean(), says: z.string() });

export const verifyAnswer = z.strictObject({
  isRight: z.boolean(),
  artifacts: z.array(
    z.strictObject({
      /** repository@digest */
      artifact: z.string(),
      isRight: z.boolean(),
      findings: z.array(finding),
      /** Whose key signed the statement that counts: a builder's name, else how the key begins; null where none does. */
      signedBy: maybe(z.string()),
      /** As that statement says. */
      built: maybe(
        z.strictObject({
          module: z.string(),
          git: z.string(),
          ref: z.string(),
          commit: z.string(),
          platform: z.string(),
          mesh: z.string(),
          closure: z.string(),
          builder: z.string(),
          startedAt: z.string(),
          finishedAt: z.string(),
        }),
      ),
      inputs: z.array(z.strictObject({ module: z.string(), artifact: z.string(), repository: z.string(), digest: z.string(), isThere: z.boolean() })),
    }),
  ),
});

/* What is asked */

/** Any text: a name that none has is answered with the one that was meant. */
const asked = z.string().min(1).max(200);

export const graphQuery = z.strictObject({ module: asked.optional(), direction: z.enum(['outbound', 'inbound']).default('outbound') });

export const planQuery = z.strictObject({ if: asked.optional() });

/** A digest, repository@digest or MODULE[/ARTIFACT]. */
export const verifyQuery = z.strictObject({ artifact: z.string().min(1).max(500) });

export type GraphEdge = Read<z.infer<typeof graphEdge>>;
export type GraphAnswer = Read<z.infer<typeof graphAnswer>>;
export type PlanStep = Read<z.infer<typeof planStep>>;
export type PlanAnswer = Read<z.infer<typeof planAnswer>>;
export type WhyChain = Read<z.infer<typeof whyChain>>;
export type ModuleGraph = Read<z.infer<typeof moduleGraph>>;
export type VerifyAnswer = Read<z.infer<typeof verifyAnswer>>;
