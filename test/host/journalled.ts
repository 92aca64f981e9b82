import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a journal that another process has open says of reports; it is only read. */
export function journal(state: string): { readonly lastReport: number } {
  const numbers = readFileSync(join(state, 'journal.jsonl'), 'utf8').matchAll(/"t":"report","report":\{.*?"number":(\d+)/g);
  return { lastReport: Math.max(0, ...[...numbers].map(([, number]) => Number(number))) };
}
