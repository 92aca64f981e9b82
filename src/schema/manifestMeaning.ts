import { posix } from 'node:path';
import { type Manifest, type ManifestResource, sourceOfArtifact } from './manifest';
import type { Finding } from './manifestFile';
import { suggest } from './manifestIssues';

/** What a schema cannot say: names that must exist, targets that must not meet, references that someone must be able to fill in. */
export function checkMeaning(manifest: Manifest, expectedModule: string | undefined): Finding[] {
  return [
    ...checkName(manifest, expectedModule),
    ...checkArtifacts(manifest),
    ...manifest.claims.flatMap((claim, i) => checkClaim(claim.resource, i)),
    ...checkTargets(manifest.resources),
    ...manifest.resources.flatMap((resource, i) => [...checkSource(resource, manifest, i), ...checkReferences(resource, ['resources', i])]),
  ];
}

export function notesOf(manifest: Manifest): string[] {
  const notes = (['requires', 'provides', 'claims'] as const)
    .filter((part) => manifest[part].length > 0)
    .map((part) => `${part}: read and checked for form, not enforced yet`);
  const placed = new Set(manifest.resources.map(sourceOf));
  const unused = Object.keys(manifest.artifacts).filter((artifact) => !placed.has(artifact));
  return unused.length > 0 && manifest.resources.length > 0 ? [...notes, `artifacts: no resource places ${unused.join(', ')}`] : notes;
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

function sourceOf(resource: ManifestResource): string | undefined {
  if ('archive' in resource) return resource.archive.from;
  return 'file' in resource ? resource.file.from : undefined;
}

function checkSource(resource: ManifestResource, manifest: Manifest, index: number): Finding[] {
  const from = sourceOf(resource);
  if (from === undefined) return [];
  const wanted = 'archive' in resource ? 'archive' : 'file';
  const path = ['resources', index, wanted, 'from'];
  const artifact = Object.hasOwn(manifest.artifacts, from) ? manifest.artifacts[from] : undefined;
  if (artifact === undefined) return [{ path, message: `\`${from}\` is not among \`artifacts\`: ${suggest(from, Object.keys(manifest.artifacts))}` }];
  const kind = 'archive' in artifact ? 'archive' : 'file';
  if (kind === wanted) return [];
  return [{ path, message: `\`${from}\` is an artifact of kind ${kind} and is placed as ${wanted}: write \`${kind}: { path: …, from: ${from} }\`` }];
}

const REFERENCE = /^(root|node\.name|facts\.[A-Za-z0-9][A-Za-z0-9_.-]*)$/;
const LITERAL = '`$$' + '{` for a literal `$' + '{`';
const KNOWN = ['root', 'node.name', 'facts.'];

function checkReferences(value: unknown, path: Array<string | number>): Finding[] {
  if (typeof value === 'string') return checkText(value, path);
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item, i) => checkReferences(item, [...path, i]));
  return Object.entries(value).flatMap(([key, item]) => checkReferences(item, [...path, key]));
}

function checkText(text: string, path: Array<string | number>): Finding[] {
  const findings: Finding[] = [];
  // `$${` is a literal `${`; the first alternative swallows it.
  for (const match of text.matchAll(/\$\$\{|\$\{([^}\n]*)(\}?)/g)) {
    const [whole, name, end] = match;
    if (whole === '$${' || name === undefined) continue;
    if (end === '') findings.push({ path, message: `a reference \`\${\` is not closed by \`}\`: write ${LITERAL}` });
    else if (!REFERENCE.test(name)) {
      const shown = name.length > 60 ? `${name.slice(0, 59)}…` : name;
      findings.push({
        path,
        message: `unknown reference \`\${${shown}}\`: ${suggest(name, KNOWN).replace('`facts.`', '`facts.KEY`').replace('facts.,', 'facts.KEY,')}; write ${LITERAL}`,
      });
    }
  }
  return findings;
}
