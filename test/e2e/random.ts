/** Random choices that a seed repeats. */
export interface Dice {
  /** From 0 to below `n`. */
  below(n: number): number;
  oneOf<T>(choices: readonly T[]): T;
  chance(of: number): boolean;
}

/** mulberry32: small, and good enough to shuffle the moments of a test. */
export function dice(seed: number): Dice {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return {
    below,
    chance: (of) => next() < of,
    oneOf(choices) {
      const choice = choices[below(choices.length)];
      if (choice === undefined) throw new Error('there is nothing to choose from');
      return choice;
    },
  };
}
