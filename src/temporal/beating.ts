import { Context } from '@temporalio/activity';
import type { Passes } from '../../workflows/shared';

/** A fifth of the time after which Temporal takes the pass of a silent process for lost (workflows/passes.ts). */
const BEAT_MS = 2_000;

/** Passes that beat while they run: one whose process died is ended soon, and the schedule begins the next. */
export function beating(passes: Passes, beatMs = BEAT_MS): Passes {
  return {
    readSources: () => beat(passes.readSources, beatMs),
    sweep: () => beat(passes.sweep, beatMs),
    fullPass: () => beat(passes.fullPass, beatMs),
  };
}

async function beat<T>(pass: () => Promise<T>, beatMs: number): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), beatMs);
  try {
    return await pass();
  } finally {
    clearInterval(timer);
  }
}
