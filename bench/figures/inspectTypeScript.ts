import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { deriveGraph } from '../../src/imports';
import { manifest } from '../../src/schema/manifest';
import { run } from '../../src/servers/run';
import { type Benchmark, elapsedMs, median } from '../figure';

const FILES = 1_000;
const PACKAGES = 20;
const RUNS = 5;
/** The newest that runs on Node 20. */
const NX = '24.0.6';
/** With which Nx reads tsconfig files. */
const TYPESCRIPT = '5.9.3';
const WITHIN_MS = 300_000;
const NX_ENV = { NX_DAEMON: 'false', NX_NO_CLOUD: 'true', NX_TUI: 'false', NX_CACHE_PROJECT_GRAPH: 'false' };

/**
 * What a workspace of TypeScript imports: all of the derivation, git and our processes included, beside the graph that Nx makes of it,
 * whole process, from nothing as well: each commit is inspected in a checkout of its own.
 */
export const inspectTypeScript: Benchmark = {
  figures: ['inspect-ts-over-nx'],
  run: async ({ print, peers, say }) => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'tally-bench-ts-'));
    try {
      writeTree(dir);
      const described = manifest.parse({ module: 'bench', artifacts: { bench: { npm: 'packages/p0' } } });
      const reading = { signal: AbortSignal.timeout(WITHIN_MS), cache: path.join(dir, '.programs') };
      const derive = async (): Promise<void> => {
        const { imports, exports, unknown } = await deriveGraph(dir, described, reading);
        if (imports.length !== PACKAGES || exports.length !== 1 || unknown.length > 0)
          throw new Error(`${imports.length} imports were found, not ${PACKAGES}`);
      };
      if (peers) await installNx(dir, say);
      const ours: number[] = [];
      const nx: number[] = [];
      await derive();
      for (let n = 0; n < RUNS; n += 1) {
        ours.push(await elapsedMs(derive));
        if (peers) nx.push(await nxGraph(dir));
      }
      const reference = peers ? { name: 'nx graph', value: median(nx) } : null;
      print({ name: 'inspect-ts-over-nx', value: median(ours), unit: 'ms', reference });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  },
};

async function installNx(dir: string, say: (text: string) => void): Promise<void> {
  say(`nx ${NX} is installed`);
  const args = [
    'install',
    '--no-save',
    '--no-package-lock',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    '--prefix',
    dir,
    `nx@${NX}`,
    `typescript@${TYPESCRIPT}`,
  ];
  const installed = await run('npm', args, { timeoutMs: WITHIN_MS });
  if (!installed.ok) throw new Error(`nx ${NX} could not be installed: ${installed.stderr}`);
}

async function nxGraph(dir: string): Promise<number> {
  await rm(path.join(dir, '.nx'), { recursive: true, force: true });
  const command = 'cd "$0" && exec node node_modules/nx/dist/bin/nx.js graph --file=graph.json';
  const taken = await elapsedMs(async () => {
    const ended = await run('sh', ['-c', command, dir], { timeoutMs: WITHIN_MS, env: { ...process.env, ...NX_ENV } });
    if (!ended.ok) throw new Error(`nx graph: ${ended.stderr || ended.stdout}`);
  });
  const { graph } = JSON.parse(await readFile(path.join(dir, 'graph.json'), 'utf8')) as { graph: { dependencies: Record<string, unknown[]> } };
  const edges = Object.values(graph.dependencies).flat().length;
  if (edges < PACKAGES) throw new Error(`nx found ${edges} edges, not ${PACKAGES}`);
  return taken;
}

/** Each package imports the next one and one from outside, and each of its files another. */
function writeTree(dir: string): void {
  const files = FILES / PACKAGES;
  const paths: Record<string, string[]> = {};
  for (let n = 0; n < PACKAGES; n += 1) {
    const folder = path.join(dir, 'packages', `p${n}`);
    mkdirSync(path.join(folder, 'src'), { recursive: true });
    write(path.join(folder, 'package.json'), { name: `@bench/p${n}`, version: '1.0.0' });
    paths[`@bench/p${n}`] = [`./packages/p${n}/src/f0.ts`];
    for (let m = 0; m < files; m += 1) writeFileSync(path.join(folder, 'src', `f${m}.ts`), sourceOf(n, m, files));
  }
  write(path.join(dir, 'package.json'), { name: 'bench', private: true, workspaces: ['packages/*'], devDependencies: { nx: NX } });
  // Else it looks at package.json alone.
  write(path.join(dir, 'nx.json'), { pluginsConfig: { '@nx/js': { analyzeSourceFiles: true } } });
  write(path.join(dir, 'tsconfig.base.json'), { compilerOptions: { paths } });
  write(path.join(dir, 'tsconfig.json'), { extends: './tsconfig.base.json' });
  writeFileSync(path.join(dir, '.gitignore'), 'node_modules\n.nx\n.programs\ngraph.json\n');
  execFileSync('git', ['init', '--quiet', dir], { timeout: 60_000 });
  execFileSync('git', ['-C', dir, 'add', '--all'], { timeout: 120_000 });
}

function sourceOf(n: number, m: number, files: number): string {
  const lines = [
    "import { readFile } from 'node:fs/promises';",
    `import type { G${m} } from './f${(m + 1) % files}';`,
    `import { f0 } from '@bench/p${(n + 1) % PACKAGES}';`,
    `export * from '@outside/m${n}/sub';`,
    // One in ten says more than its statements, and needs its whole tree.
    m % 10 === 0 ? `export const later = () => import('@outside/m${n}');` : `export const now = f0;`,
  ];
  for (let k = 0; k < 20; k += 1)
    lines.push(
      `/** Says ${k}. */`,
      `export async function f${m}x${k}(a: number): Promise<string> {`,
      `  return \`\${a + ${k}} \${await readFile('x')}\`;`,
      '}',
      '',
    );
  return `${lines.join('\n')}\n`;
}

function write(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
