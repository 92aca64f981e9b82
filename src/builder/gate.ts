/** One build at a time, whatever queue it came by, in the order of arrival. */
export interface Gate {
  /** Gives the way out, once, when it is this one's turn; null where the builder ends before. */
  enter(): Promise<(() => void) | null>;
}

export function createGate(ending: AbortSignal): Gate {
  let last: Promise<void> = Promise.resolve();
  const ended = new Promise<'ended'>((resolve) => ending.addEventListener('abort', () => resolve('ended'), { once: true }));
  return {
    async enter() {
      const before = last;
      let leave = (): void => undefined;
      last = new Promise((resolve) => {
        leave = resolve;
      });
      if (ending.aborted || (await Promise.race([before, ended])) === 'ended') {
        // Those behind still wait for the one before.
        void before.then(leave);
        return null;
      }
      return leave;
    },
  };
}
