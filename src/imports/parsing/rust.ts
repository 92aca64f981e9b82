import type { Outcome, Parse } from './types';

export interface RustUse {
  readonly line: number;
}

export async function rustParser(): Promise<Parse<RustUse>> {
  return (): Outcome<RustUse> => ({ uses: [], computed: [], broken: null });
}
