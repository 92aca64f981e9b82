import { EnvironmentError } from '../domain/errors';
import type { Log } from '../log';
import type { Running } from './deps';

export interface LoopOptions {
  readonly name: string;
  readonly log: Log;
  /** Until the next pass, told by the pass that ends. */
  readonly pauseMs: (found: number) => number;
  /** @returns how much it found to do. */
  readonly pass: () => Promise<number>;
}

export interface Loop extends Running {
  /** Lets the next pass begin now. */
  wake(): void;
}

const STOP_WITHIN_MS = 10_000;
/** Said once when it begins and once when it ends, since a store that is away fails every pass. */
const AFTER_FAILURE_MS = 1_000;

/** A pass after the other, never two at a time, until it is stopped. A pass that fails is tried again by the next. */
export function startLoop(options: LoopOptions): Loop {
  const { log } = options;
  let isStopped = false;
  let isFailing = false;
  let wake: () => void = () => undefined;
  let isWoken = false;

  const running = run();

  async function run(): Promise<void> {
    while (!isStopped) {
      let pauseMs = AFTER_FAILURE_MS;
      try {
        pauseMs = options.pauseMs(await options.pass());
        if (isFailing) log.warn({ loop: options.name }, 'the pass works again');
        isFailing = false;
      } catch (error) {
        if (!isFailing)
          log[error instanceof EnvironmentError ? 'warn' : 'error']({ loop: options.name, err: error }, 'a pass failed; it is tried again');
        isFailing = true;
      }
      await pause(pauseMs);
    }
  }

  async function pause(ms: number): Promise<void> {
    if (isStopped || isWoken) {
      isWoken = false;
      return;
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    wake = () => undefined;
    isWoken = false;
  }

  return {
    wake() {
      isWoken = true;
      wake();
    },
    async stop() {
      isStopped = true;
      wake();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, STOP_WITHIN_MS);
      });
      await Promise.race([running, late]);
      clearTimeout(timer);
    },
  };
}
