/** One build at a time, whatever queue it came by, in the order of arrival. */
export interface Gate {
  /** Gives the way out, once, when it is this one's turn; null where the wait was aborted. */
  enter(signal: AbortSignal): Promise<(() => void) | null>;
}

export function createGate(): Gate {
  let last: Promise<void> = Promise.resolve();
  return {
    async enter(signal) {
      const before = last;
      let leave = (): void => undefined;
      last = new Promise((resolve) => {
        leave = resolve;
      });
      const aborted = new Promise<'aborted'>((resolve) => signal.addEventListener('abort', () => resolve('aborted'), { once: true }));
      if (signal.aborted || (await Promise.race([before, aborted])) === 'aborted') {
        // Those behind still wait for the one before.
        void before.then(leave);
        return null;
      }
      return leave;
    },
  };
}
