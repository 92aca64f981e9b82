import { posix } from 'node:path';
import { type InstanceResource, type Manifest, type ManifestResource, sourceOfArtifact } from './manifest';
import { type Finding, suggest } from './manifestIssues';
import { checkProvisions, checkReferencesOfModule, checkRequirements } from './manifestProvisions';

/** What a schema cannot say: names that must exist, targets that must not meet, references that someone must be able to fill in. */
export function checkMeaning(manifest: Manifest, expectedModule: string | undefined): Finding[] {
  return [
    ...checkName(manifest, expectedModule),
    ...checkArtifacts(manifest),
    ...manifest.claims.flatMap((claim, i) => checkClaim(claim.resource, i)),
    ...checkTargets(manifest.resources),
    ...manifest.resources.flatMap((resource, i) => checkSource(resource, manifest, ['resources', i])),
    ...manifest.provides.flatMap((given, i) =>
      'presence' in given ? [] : given.resources.flatMap((resource, j) => checkSource(resource, manifest, ['provides', i, 'resources', j])),
    ),
    ...checkRequirements(manifest),
    ...checkProvisions(manifest),
    ...checkReferencesOfModule(manifest),
  ];
}

export function notesOf(manifest: Manifest): string[] {
  const made = manifest.provides.flatMap((given) => ('presence' in given ? [] : given.resources));
  const placed = new Set([...manifest.resources, ...made].map(sourceOf));
  // The other kinds are for modules to build on, and no resource can place them.
  const unused = Object.entries(manifest.artifacts).flatMap(([name, artifact]) =>
    ('archive' in artifact || 'file' in artifact) && !placed.has(name) ? [name] : [],
  );
  return unused.length > 0 && manifest.resources.length > 0 ? [`artifacts: no resource places ${unused.join(', ')}`] : [];
}

function checkName(manifest: Manifest, expected: string | undefined): Finding[] {
  if (expected === undefined || manifest.module === expected) return [];
  return [
    { path: ['module'], message: `the file says \`${manifest.module}\` and the mesh knows this repository as \`${expected}\`: make them the same` },
  ];
}

function checkArtifacts(manifest: Manifest): Finding[] {
  return Object.entries(manifest.artifacts).flatMap(([name, artifact]) => {
    const { kind, path } = sourceOfArtifact(artifact);
    const clean = posix.normalize(path);
    if (posix.isAbsolute(path) || clean === '..' || clean.startsWith('../') || clean === '.git' || clean.startsWith('.git/')) {
      return [{ path: ['artifacts', name, kind], message: `\`${path}\` leaves the tree: name a path in the repository, as in out/` }];
    }
    if (kind === 'file' && path.endsWith('/')) {
      return [{ path: ['artifacts', name, kind], message: `\`${path}\` is a directory: name a file, or write \`archive: ${path}\`` }];
    }
    return [];
  });
}

function checkClaim(resource: string, index: number): Finding[] {
  if (/^[a-z][a-z0-9-]*\/[^\s/][^\s]*$/.test(resource)) return [];
  return [{ path: ['claims', index, 'resource'], message: `\`${resource}\` is not a resource: write kind/name, as in port/8080` }];
}

/** Two resources on one target would undo one another for ever. */
function checkTargets(resources: ManifestResource[]): Finding[] {
  const seen = new Map<string, number>();
  const findings: Finding[] = [];
  resources.forEach((resource, i) => {
    const { shape, key, target } = targetOf(resource);
    const path = ['resources', i, shape, key];
    if (key === 'path') {
      if (target === '/') findings.push({ path, message: '`/` is the root of the node: name a path under it' });
      if (target.split('/').includes('..')) findings.push({ path, message: `\`${target}\` holds \`..\`: write the path out` });
    }
    const identity = key === 'path' ? posix.normalize(target).replace(/(.)\/$/, '$1') : `${shape} ${target}`;
    const before = seen.get(identity);
    if (before !== undefined) findings.push({ path, message: `resources[${before}] has the same target \`${target}\`: keep one` });
    else seen.set(identity, i);
  });
  return findings;
}

function targetOf(resource: ManifestResource): { shape: string; key: 'path' | 'name'; target: string } {
  if ('file' in resource) return { shape: 'file', key: 'path', target: resource.file.path };
  if ('directory' in resource) return { shape: 'directory', key: 'path', target: resource.directory.path };
  if ('archive' in resource) return { shape: 'archive', key: 'path', target: resource.archive.path };
  if ('service' in resource) return { shape: 'service', key: 'name', target: resource.service.name };
  return { shape: 'action', key: 'name', target: resource.action.name };
}

function sourceOf(resource: InstanceResource): string | undefined {
  if ('archive' in resource) return resource.archive.from;
  return 'file' in resource ? resource.file.from : undefined;
}

function checkSource(resource: InstanceResource, manifest: Manifest, at: Array<string | number>): Finding[] {
  const from = sourceOf(resource);
  if (from === undefined) return [];
  const wanted = 'archive' in resource ? 'archive' : 'file';
  const path = [...at, wanted, 'from'];
  const artifact = Object.hasOwn(manifest.artifacts, from) ? manifest.artifacts[from] : undefined;
  if (artifact === undefined) return [{ path, message: `\`${from}\` is not among \`artifacts\`: ${suggest(from, Object.keys(manifest.artifacts))}` }];
  const { kind } = sourceOfArtifact(artifact);
  if (kind === wanted) return [];
  if (kind !== 'archive' && kind !== 'file')
    return [{ path, message: `\`${from}\` is an artifact of kind ${kind}, for other modules to build on: place one of kind ${wanted}` }];
  return [{ path, message: `\`${from}\` is an artifact of kind ${kind} and is placed as ${wanted}: write \`${kind}: { path: …, from: ${from} }\`` }];
}
