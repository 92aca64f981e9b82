/** What a benchmark measures and how it says so. */

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: 's' | 'ms' | 'MiB' | '1/s';
  /** Something else measured in the same run, or a named aim. */
  readonly reference: { readonly name: string; readonly value: number } | null;
}

export interface Bench {
  readonly print: (figure: Figure) => void;
  /** Install and run the programs that a figure is compared with. */
  readonly peers: boolean;
  /** Progress, to stderr. */
  readonly say: (text: string) => void;
}

export interface Benchmark {
  /** The figures it prints, by name. */
  readonly figures: readonly string[];
  readonly run: (bench: Bench) => Promise<void>;
}

/** The middle of some measurements; the mean of the two middle ones of an even number. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper;
}

export async function elapsedMs(run: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await run();
  return Number(process.hrtime.bigint() - start) / 1e6;
}
