/** How the demo tells what it does and checks what it says: by looking until it is so, or until the time is over. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Progress } from '../cli/progress';

/** What a look saw: whether it is as expected, and in words what is so. */
export interface Seen {
  readonly isSo: boolean;
  readonly says: string;
}

export class DemoFailure extends Error {
  override readonly name = 'DemoFailure';
}

export interface Stage {
  scene(title: string): void;
  /** What was done, in one line. */
  did(text: string): void;
  /** A result line, as `tally status` gives it. */
  result(text: string): void;
  /** Looks until it is so that `subject` is as `expected` says; after `withinMs` it throws with what was expected and what was seen. */
  check(subject: string, expected: string, withinMs: number, look: () => Promise<Seen>): Promise<void>;
}

const LOOK_EVERY_MS = 200;

/** @param goOn throws once the play is to end: nothing is done or waited for after that. */
export function stage(progress: Progress, paint: { bold(text: string): string; dim(text: string): string }, goOn: () => void): Stage {
  let scenes = 0;
  return {
    scene(title) {
      goOn();
      scenes += 1;
      progress.line(`\n${paint.bold(`${scenes} · ${title}`)}`);
    },
    did: (text) => progress.line(`  ${text}`),
    result: (text) => progress.line(`  ${paint.dim('›')} ${text}`),
    check: (subject, expected, withinMs, look) =>
      progress.step(subject, async (say) => {
        const deadline = Date.now() + withinMs;
        for (;;) {
          goOn();
          const seen = await looked(look);
          if (seen.isSo) return say(expected);
          say(`${expected}: ${seen.says}`);
          if (Date.now() > deadline) throw new DemoFailure(`expected: ${subject} ${expected}\nseen after ${withinMs / 1_000} s: ${seen.says}`);
          await pause(LOOK_EVERY_MS);
        }
      }),
  };
}

/** A look that cannot be taken has not seen it; what was in its way is what is so. */
async function looked(look: () => Promise<Seen>): Promise<Seen> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof DemoFailure) throw error;
    return { isSo: false, says: error instanceof Error ? error.message : String(error) };
  }
}
