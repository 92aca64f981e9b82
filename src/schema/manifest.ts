import { z } from 'zod';
import { type ArtifactKind, absolutePath, duration, memory, name } from './primitives';

/** What a module's author writes: `module.yaml` at the root of the repository. Unknown keys are refused. */

const artifact = z.union([
  z.strictObject({ archive: z.string().min(1).describe('a directory of the tree, packed as a reproducible tar+gzip') }),
  z.strictObject({ file: z.string().min(1).describe('one file of the tree') }),
  z.strictObject({ go: z.string().min(1).describe('a directory with a go.mod: a Go module for other modules to build on') }),
  z.strictObject({ npm: z.string().min(1).describe('a directory with a package.json: an npm package for other modules to build on') }),
  z.strictObject({
    wheel: z.string().min(1).describe('a .whl that the build makes (`*` stands for its version): a Python package for other modules'),
  }),
  z.strictObject({ crate: z.string().min(1).describe('a directory with a Cargo.toml: a crate for other modules to build on') }),
]);

const build = z.strictObject({
  fetch: z.string().optional().describe('the only command with the network, unless `network` says so; its failure is environmental'),
  run: z.string().optional().describe('makes the artifacts; without the network'),
  test: z.string().optional().describe('non-zero is a failure of the module; 75 (EX_TEMPFAIL) is environmental'),
  platform: z
    .string()
    .regex(/^[a-z0-9]+-[a-z0-9]+$/, 'a platform is os-architecture, as in linux-amd64')
    .default('linux-amd64'),
  timeout: duration.default(600_000).describe('for run and test together, as in 10m; going beyond it is a failure of the module'),
  memory: memory.optional().describe('as in 512M; going beyond it is a failure of the module'),
  network: z.boolean().default(false).describe('true gives run and test the network as well'),
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'an environment variable is letters, digits and underscores'), z.string()).default({}),
  supersede: z.enum(['finish', 'cancel']).default('finish').describe('what a newer commit does to a build that already runs'),
});

const scope = z.enum(['node', 'site', 'mesh']);

const claim = z.strictObject({
  resource: z.string().min(1).describe('a singular resource, as in port/8080; `${facts.KEY}` and `${node.name}` are filled in'),
  scope: scope.describe('where only one may have it'),
});

/** Of a parameter, of what is given: no dots, since references part their words by them. */
const word = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,62}$/, 'a word here is letters, digits, _ and -, beginning with a letter');

const requirement = z.union([
  z.strictObject({ presence: name.describe('some module that is near enough must provide it') }),
  z.strictObject({
    instantiation: name.describe('a provider makes one for this module'),
    as: name.optional().describe('by this name `${bind.NAME.KEY}` refers to what it gives; the name of the instantiation where it is silent'),
    with: z.record(word, z.string()).default({}).describe('parameters; `${facts.KEY}` and `${node.name}` are of the consumer’s node'),
  }),
]);

const mode = z.string().regex(/^0[0-7]{3}$/, 'a mode is four octal digits in quotes, as in "0644"');

/**
 * References: `${root}` (filled in by the host), `${node.name}`, `${node.address}`, `${facts.KEY}`, `${bind.NAME.KEY}`; `$${` stands for a
 * literal `${`. A secret may stand in the content of a file of mode 0600 and nowhere else.
 */
const fileSpec = z
  .strictObject({
    path: absolutePath,
    mode: mode.default('0644'),
    content: z.string().optional(),
    from: name.optional().describe('an artifact of kind file; instead of `content`'),
  })
  .refine((f) => (f.content === undefined) !== (f.from === undefined), 'a file has either `content` or `from`');

const directorySpec = z.strictObject({ path: absolutePath, mode: mode.default('0755') });

const archiveSpec = z.strictObject({ path: absolutePath, from: name.describe('an artifact of kind archive') });

const ready = z
  .strictObject({
    http: z
      .url({ protocol: /^https?$/ })
      .or(z.string().regex(/^https?:\/\/.*\$\{/))
      .optional(),
    tcp: z.string().optional().describe('host:port that must accept'),
    exec: z.array(z.string()).min(1).optional().describe('a command that must end with 0'),
    within: duration.default(3_000),
  })
  .refine((r) => [r.http, r.tcp, r.exec].filter((x) => x !== undefined).length === 1, 'ready names one of http, tcp, exec');

/** What is made for each instance has the instance in its name. */
const templatedName = name.or(
  z.string().regex(/^([a-z0-9-]|\$\{instance\.name\})+$/, 'a name is lower-case letters, digits, dashes and `${instance.name}`'),
);

const serviceSpec = z.strictObject({
  name: name,
  run: z.array(z.string()).min(1),
  env: z.record(z.string(), z.string()).default({}),
  environmentFile: absolutePath
    .optional()
    .describe('more of it, `NAME=value` a line without quotes, from a file that this module places: where a secret of the environment comes from'),
  directory: absolutePath.optional(),
  ready: ready.optional(),
  stopWithin: duration.default(10_000).describe('between SIGTERM and SIGKILL'),
});

/** Runs when its `unless` does not hold; read back by `unless` after. Only a module declares it, never the link. */
const actionSpec = z.strictObject({
  name: name,
  run: z.array(z.string()).min(1),
  unless: z.array(z.string()).min(1).describe('ends with 0 when there is nothing to do'),
  undo: z.array(z.string()).min(1).optional().describe('runs when it is declared no longer'),
  timeout: duration.default(60_000),
});

export const resource = z.union([
  z.strictObject({ file: fileSpec }),
  z.strictObject({ directory: directorySpec }),
  z.strictObject({ archive: archiveSpec }),
  z.strictObject({ service: serviceSpec }),
  z.strictObject({ action: actionSpec }),
]);

/** What a consumer says ends up in files and commands of another node: unless the provider asks for more, it is one plain word. */
const parameter = z.strictObject({
  is: z
    .enum(['word', 'number', 'port', 'host', 'text'])
    .default('word')
    .describe(
      'what is taken: a word of letters, digits, `.`, `_` and `-`; a number; a port; a host name; or any text on one line, for `content` and `run` alone',
    ),
  default: z.string().optional(),
  about: z.string().optional(),
});

/** Placed on the provider's node for each instance. */
const instanceResource = z.union([
  z.strictObject({ file: fileSpec }),
  z.strictObject({ directory: directorySpec }),
  z.strictObject({ archive: archiveSpec }),
  z.strictObject({ service: serviceSpec.extend({ name: templatedName }) }),
  z.strictObject({ action: actionSpec.extend({ name: templatedName }) }),
]);

const provision = z.union([
  z.strictObject({ presence: name, scope: scope.default('node').describe('where those who require it may be') }),
  z.strictObject({
    instantiation: name,
    scope: scope.default('mesh').describe('where consumers may be'),
    per: z.enum(['module', 'node']).default('module').describe('one for all nodes of a consumer, or one for each'),
    parameters: z.record(word, parameter).default({}).describe('what a consumer says in `with`; one without a default must be said'),
    secrets: z.array(word).default([]).describe('made once for each instance, sealed, and rotated by `tally instance rotate`'),
    resources: z.array(instanceResource).default([]).describe('`${instance.name}`, `.consumer`, `.node`, `.address`, `${with.P}`, `${secret.S}`'),
    gives: z.record(word, z.string()).default({}).describe('what a consumer gets as `${bind.NAME.KEY}`; `${node.…}` is of the provider’s node'),
  }),
]);

export const manifest = z.strictObject({
  module: name,
  declare: z.enum(['auto', 'ask']).optional(),
  artifacts: z.record(name, artifact).default({}),
  build: build.default(() => build.parse({})),
  requires: z.array(requirement).default([]),
  provides: z.array(provision).default([]),
  claims: z.array(claim).default([]),
  resources: z.array(resource).default([]),
});

export type Manifest = z.infer<typeof manifest>;
export type InstanceResource = z.infer<typeof instanceResource>;
export type Scope = z.infer<typeof scope>;
type Requirement = z.infer<typeof requirement>;
type Provision = z.infer<typeof provision>;
export type Instantiation = Extract<Requirement, { instantiation: string }>;
export type Parameter = z.infer<typeof parameter>;
export type InstanceProvision = Extract<Provision, { instantiation: string }>;
export type ManifestArtifact = z.infer<typeof artifact>;
export type ManifestResource = z.infer<typeof resource>;

/** The one key of an artifact and what it names in the tree. */
export function sourceOfArtifact(artifact: ManifestArtifact): { readonly kind: ArtifactKind; readonly path: string } {
  const [only] = Object.entries(artifact) as Array<[ArtifactKind, string]>;
  if (only === undefined) throw new TypeError('an artifact names what it is of');
  return { kind: only[0], path: only[1] };
}
