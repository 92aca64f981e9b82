/** Ctrl-C and SIGTERM: the first asks for an orderly end, the second for a quick one. */

export interface Interruption {
  /** Resolves at the first signal. */
  readonly asked: Promise<void>;
  isAsked(): boolean;
  /** Called at the second signal, and at each one after it. */
  onInsisting(act: () => void): void;
  /** Rejects with `Interrupted` as soon as a signal came, else goes as `work` goes. */
  until<T>(work: Promise<T>): Promise<T>;
}

export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

export function watchInterruption(): Interruption {
  let isAsked = false;
  let insist: () => void = () => undefined;
  let tell: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const onSignal = (): void => {
    if (isAsked) insist();
    isAsked = true;
    tell();
  };
  // SIGHUP too: a terminal that is closed leaves nothing running.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  return {
    asked,
    isAsked: () => isAsked,
    onInsisting: (act) => {
      insist = act;
    },
    until: (work) =>
      Promise.race([
        work,
        asked.then(() => {
          throw new Interrupted('asked to stop');
        }),
      ]),
  };
}
