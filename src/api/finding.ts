/** What a probe of `tally doctor` finds. */
export interface Finding {
  readonly isWell: boolean;
  /** What is so, in one line. */
  readonly says: string;
  /** What to do; null where nothing is. */
  readonly remedy: string | null;
}

export interface Probe {
  readonly what: string;
  run(): Promise<Finding>;
}

export function well(says: string): Finding {
  return { isWell: true, says, remedy: null };
}

export function ill(says: string, remedy: string): Finding {
  return { isWell: false, says, remedy };
}
