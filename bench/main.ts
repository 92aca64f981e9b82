/** `npm run bench [-- NAME…]`: one JSON line a figure; a reference is measured in the same run where one is named. */
import os from 'node:os';
import type { Benchmark, Figure } from './figure';
import { affected } from './figures/affected';
import { cascade } from './figures/cascade';
import { coldMesh } from './figures/coldMesh';
import { deliverOverhead } from './figures/deliverOverhead';
import { deliverThousand } from './figures/deliverThousand';
import { hostNoop } from './figures/hostNoop';
import { inspectGo } from './figures/inspectGo';
import { inspectTypeScript } from './figures/inspectTypeScript';
import { noopOverNinja } from './figures/noopOverNinja';
import { planOverTurbo } from './figures/planOverTurbo';
import { reportsPerSecond } from './figures/reportsPerSecond';
import { setupSeconds } from './figures/setupSeconds';
import { sweepTenThousand } from './figures/sweepTenThousand';
import { wideChange } from './figures/wideChange';

const benchmarks: readonly Benchmark[] = [
  sweepTenThousand,
  wideChange,
  affected,
  coldMesh,
  noopOverNinja,
  reportsPerSecond,
  deliverOverhead,
  deliverThousand,
  cascade,
  hostNoop,
  inspectGo,
  inspectTypeScript,
  planOverTurbo,
  setupSeconds,
];

async function main(args: readonly string[]): Promise<void> {
  const peers = args.includes('--peers');
  const names = args.filter((arg) => !arg.startsWith('--'));
  const known = benchmarks.flatMap((one) => one.figures);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    process.stderr.write(`bench: no figure is called ${unknown.join(', ')}; there are ${known.join(', ')}\n`);
    process.exitCode = 2;
    return;
  }
  for (const benchmark of benchmarks) {
    if (names.length > 0 && !benchmark.figures.some((figure) => names.includes(figure))) continue;
    const print = (figure: Figure): void => {
      const { value, reference } = figure;
      const ratio = reference === null || reference.value === 0 ? null : round(value / reference.value);
      const line = {
        figure: figure.name,
        value: round(value),
        unit: figure.unit,
        reference: reference && { ...reference, value: round(reference.value) },
        ratio,
        cores: os.cpus().length,
      };
      process.stdout.write(`${JSON.stringify(line)}\n`);
    };
    await benchmark.run({ print, peers, say: (text) => process.stderr.write(`${text}\n`) });
  }
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
