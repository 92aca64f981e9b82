import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { deriveGraph } from '../../src/imports';
import { manifest } from '../../src/schema/manifest';
import { run } from '../../src/servers/run';
import { type Benchmark, elapsedMs, median } from '../figure';

const FILES = 4_000;
const FILES_OF_PACKAGE = 10;
const OTHERS = 10;
const RUNS = 5;
const LIST_WITHIN_MS = 300_000;

/** What a tree of Go imports: all of the derivation, git and our processes included, beside the listing that Go gives of its packages. */
export const inspectGo: Benchmark = {
  figures: ['inspect-go-over-golist'],
  run: async ({ print }) => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'tally-bench-go-'));
    try {
      const tree = path.join(dir, 'tree');
      writeTree(tree);
      const described = manifest.parse({ module: 'bench', artifacts: { bench: { go: '.' } } });
      const reading = { signal: AbortSignal.timeout(LIST_WITHIN_MS), cache: path.join(dir, 'programs') };
      const derive = async (): Promise<void> => {
        const { imports, exports } = await deriveGraph(tree, described, reading);
        if (imports.length !== OTHERS || exports.length !== 1) throw new Error(`${imports.length} imports were found, not ${OTHERS}`);
      };
      const list = async (): Promise<void> => {
        const listed = await run('sh', ['-c', 'cd "$0" && exec go list -e -json ./... > /dev/null', tree], {
          timeoutMs: LIST_WITHIN_MS,
          env: { ...process.env, GOFLAGS: '', GOPROXY: 'off', GOWORK: 'off', GOTOOLCHAIN: 'local' },
        });
        if (!listed.ok) throw new Error(`go list: ${listed.stderr}`);
      };
      // Each once before: our program is compiled once a machine, and Go keeps what it learned of the tree.
      await derive();
      await list();
      const ours: number[] = [];
      const golist: number[] = [];
      for (let n = 0; n < RUNS; n += 1) {
        ours.push(await elapsedMs(derive));
        golist.push(await elapsedMs(list));
      }
      print({ name: 'inspect-go-over-golist', value: median(ours), unit: 'ms', reference: { name: 'go list', value: median(golist) } });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  },
};

/** A module of many packages that imports some of another one, which lies beside the tree so that `go list` finds it. */
function writeTree(tree: string): void {
  const packages = FILES / FILES_OF_PACKAGE;
  for (let n = 0; n < packages; n += 1) {
    const folder = path.join(tree, `internal/part${n % 20}/p${n}`);
    mkdirSync(folder, { recursive: true });
    for (let m = 0; m < FILES_OF_PACKAGE; m += 1) {
      const other = Math.floor(n / 2);
      const imports = ['"context"', '"fmt"', '"net/http"', `_ "example.com/others/o${n % OTHERS}"`];
      if (n > 0) imports.push(`_ "example.com/tree/internal/part${other % 20}/p${other}"`);
      const body = Array.from(
        { length: 30 },
        (_, k) => `// F${m}_${k} says what it is given.\nfunc F${m}_${k}(ctx context.Context, r *http.Request) {\n\tfmt.Println(ctx, r, ${k})\n}\n`,
      );
      writeFileSync(path.join(folder, `f${m}.go`), `package p${n}\n\nimport (\n\t${imports.join('\n\t')}\n)\n\n${body.join('\n')}`);
    }
  }
  const others = path.join(path.dirname(tree), 'others');
  for (let n = 0; n < OTHERS; n += 1) {
    mkdirSync(path.join(others, `o${n}`), { recursive: true });
    writeFileSync(path.join(others, `o${n}`, 'o.go'), `package o${n}\n`);
  }
  writeFileSync(path.join(others, 'go.mod'), 'module example.com/others\n\ngo 1.22\n');
  const needs = 'require example.com/others v0.0.0\n\nreplace example.com/others => ../others\n';
  writeFileSync(path.join(tree, 'go.mod'), `module example.com/tree\n\ngo 1.22\n\n${needs}`);
  execFileSync('git', ['init', '--quiet', tree], { timeout: 60_000 });
  execFileSync('git', ['-C', tree, 'add', '--all'], { timeout: 120_000 });
}
