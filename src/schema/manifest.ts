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

const claim = z.strictObject({
  resource: z.string().min(1).describe('a singular resource, as in port/8080'),
  scope: z.enum(['node', 'site', 'mesh']),
});

const requirement = z.union([
  z.strictObject({ presence: name }),
  z.strictObject({ instantiation: name, with: z.record(z.string(), z.string()).optional() }),
]);

const mode = z.string().regex(/^0[0-7]{3}$/, 'a mode is four octal digits in quotes, as in "0644"');

/** References: `${root}` (filled in by the host), `${node.name}`, `${facts.KEY}`; `$${` stands for a literal `${`. */
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

const serviceSpec = z.strictObject({
  name: name,
  run: z.array(z.string()).min(1),
  env: z.record(z.string(), z.string()).default({}),
  directory: absolutePath.optional(),
  ready: ready.optional(),
  stopWithin: duration.default(10_000).describe('between SIGTERM and SIGKILL'),
});

/** Runs when its `unless` does not hold; read back by `unless` after. Only a module declares it, never the link. */
const actionSpec = z.strictObject({
  name: name,
  run: z.array(z.string()).min(1),
  unless: z.array(z.string()).min(1).describe('ends with 0 when there is nothing to do'),
  timeout: duration.default(60_000),
});

export const resource = z.union([
  z.strictObject({ file: fileSpec }),
  z.strictObject({ directory: directorySpec }),
  z.strictObject({ archive: archiveSpec }),
  z.strictObject({ service: serviceSpec }),
  z.strictObject({ action: actionSpec }),
]);

export const manifest = z.strictObject({
  module: name,
  declare: z.enum(['auto', 'ask']).optional(),
  artifacts: z.record(name, artifact).default({}),
  build: build.default(() => build.parse({})),
  requires: z.array(requirement).default([]),
  provides: z.array(z.union([z.strictObject({ presence: name }), z.strictObject({ instantiation: name })])).default([]),
  claims: z.array(claim).default([]),
  resources: z.array(resource).default([]),
});

export type Manifest = z.infer<typeof manifest>;
export type ManifestArtifact = z.infer<typeof artifact>;
export type ManifestResource = z.infer<typeof resource>;

/** The one key of an artifact and what it names in the tree. */
export function sourceOfArtifact(artifact: ManifestArtifact): { readonly kind: ArtifactKind; readonly path: string } {
  const [only] = Object.entries(artifact) as Array<[ArtifactKind, string]>;
  if (only === undefined) throw new TypeError('an artifact names what it is of');
  return { kind: only[0], path: only[1] };
}
