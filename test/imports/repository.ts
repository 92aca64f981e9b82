import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { deriveGraph } from '../../src/imports';
import { type Manifest, manifest } from '../../src/schema/manifest';
import { packageRoot } from '../../src/servers/places';

/** A checkout made of files, and what is derived from it. */

/** By path. A Buffer for a file that is no text, `{ link }` for a symbolic link. */
export type Files = Record<string, string | Buffer | { link: string }>;

export type Derived = Awaited<ReturnType<typeof deriveGraph>>;

const made: string[] = [];

export function removeRepositories(): void {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
}

/** Compiled programs are kept from one test run to the next, as a builder keeps them. */
export const programs = join(packageRoot(), 'node_modules', '.cache', 'tally-programs');

/** Tracked as they are, without a commit. Keys that begin with `latin1:` are names of those bytes. */
export function repository(files: Files): string {
  const root = mkdtempSync(join(tmpdir(), 'tally-imports-'));
  made.push(root);
  for (const [path, content] of Object.entries(files)) {
    const raw = path.startsWith('latin1:') ? Buffer.from(path.slice('latin1:'.length), 'latin1') : Buffer.from(path);
    const whole = Buffer.concat([Buffer.from(`${root}/`), raw]);
    mkdirSync(dirname(join(root, path.replace(/^latin1:/, ''))), { recursive: true });
    if (typeof content === 'string' || Buffer.isBuffer(content)) writeFileSync(whole, content);
    else symlinkSync(content.link, whole);
  }
  execFileSync('git', ['init', '--quiet', root], { timeout: 20_000 });
  execFileSync('git', ['-C', root, 'add', '--all', '--force'], { timeout: 60_000 });
  return root;
}

export function manifestWith(artifacts: Record<string, Record<string, string>>): Manifest {
  return manifest.parse({ module: 'tried', artifacts });
}

export function derive(files: Files, artifacts: Record<string, Record<string, string>> = {}): Promise<Derived> {
  return deriveIn(repository(files), artifacts);
}

export function deriveIn(root: string, artifacts: Record<string, Record<string, string>> = {}): Promise<Derived> {
  return deriveGraph(root, manifestWith(artifacts), { signal: AbortSignal.timeout(120_000), cache: programs });
}

/** `name FILE:LINE`, with `(test)` where only tests import it. */
export function importsOf(derived: Derived): string[] {
  return derived.imports.map(({ name, test, file, line }) => `${name} ${file}:${line}${test ? ' (test)' : ''}`);
}

export function candidatesOf(derived: Derived, name: string): string[] | undefined {
  return derived.imports.find((one) => one.name === name)?.candidates;
}
