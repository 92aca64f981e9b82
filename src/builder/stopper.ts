/** Why work that runs is to end before its time. */
export interface StopReason {
  kind: 'cancelled' | 'shutdown';
  reason: string;
}

/** An abort with its reason; the first one counts. */
export interface Stopper {
  signal: AbortSignal;
  why(): StopReason | null;
  stop(reason: StopReason): void;
}

export function createStopper(): Stopper {
  const controller = new AbortController();
  let why: StopReason | null = null;
  return {
    signal: controller.signal,
    why: () => why,
    stop(reason) {
      why ??= reason;
      controller.abort();
    },
  };
}
