/**
 * A child process that is meant to run: started in a session of its own with its output in a file, started again with
 * backoff when it ends unasked, and stopped with everything that it started. What an earlier run left of it is stopped
 * before a new one starts, so that it never runs twice.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { EnvironmentError } from '../domain/errors';
import { forget, leftover, type ProcessSpec, startProcess, stopProcess } from '../servers/processes';

const FIRST_PAUSE_MS = 500;
const MOST_PAUSE_MS = 30_000;
/** Whoever ran this long is taken as healthy: its next end is a first one again. */
const HEALTHY_MS = 30_000;

export interface Supervised {
  readonly name: string;
  /** The process that runs now; null while it is stopped or waits to be started again. */
  pid(): number | null;
  start(): Promise<void>;
  /** Ends it and keeps it ended; with SIGKILL at once, else by the signal it knows. Safe to call twice. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Kills it as an accident would: it is started again. */
  crash(): void;
}

/**
 * @param say is told of every end that nobody asked for, in one line.
 * @param isOver once true, nothing is started any more: whoever stops everything is not overtaken by a late start.
 */
export function supervise(spec: ProcessSpec, say: (line: string) => void, isOver: () => boolean = () => false): Supervised {
  let isWanted = false;
  let child: ChildProcess | null = null;
  let timer: NodeJS.Timeout | null = null;
  let pauseMs = FIRST_PAUSE_MS;

  function run(): void {
    const startedAt = Date.now();
    const started = startProcess(spec);
    // Whoever keeps it running stays as long as it does.
    started.ref();
    child = started;
    started.once('exit', (code, signal) => {
      if (child !== started) return;
      child = null;
      if (!isWanted) return;
      if (Date.now() - startedAt > HEALTHY_MS) pauseMs = FIRST_PAUSE_MS;
      say(`${spec.name} ended ${signal === null ? `with status ${code ?? 'unknown'}` : `by ${signal}`}; started again in ${pauseMs / 1_000} s`);
      timer = setTimeout(again, pauseMs);
      pauseMs = Math.min(pauseMs * 2, MOST_PAUSE_MS);
    });
  }

  function again(): void {
    timer = null;
    if (!isWanted) return;
    void stopLeftover()
      .then(() => {
        if (isWanted) run();
      })
      .catch((error: unknown) => {
        say(`${spec.name} cannot be started again: ${error instanceof Error ? error.message : String(error)}`);
        if (isWanted) timer = setTimeout(again, pauseMs);
      });
  }

  async function stopLeftover(): Promise<void> {
    const left = leftover(spec);
    if (left !== null) await stopProcess(left.pid, spec.stopSignal);
    forget(spec);
  }

  return {
    name: spec.name,
    pid: () => child?.pid ?? null,
    async start() {
      if (isWanted || isOver()) return;
      isWanted = true;
      pauseMs = FIRST_PAUSE_MS;
      await stopLeftover();
      if (!isWanted || isOver()) return;
      run();
      if (child?.pid === undefined) throw new EnvironmentError(`cannot run ${spec.command} for ${spec.name}: see ${spec.home}/${spec.name}.log`);
    },
    async stop(signal = spec.stopSignal) {
      isWanted = false;
      if (timer !== null) clearTimeout(timer);
      timer = null;
      const running = child;
      const pid = running?.pid;
      if (running === null || pid === undefined) return;
      const ended = running.exitCode !== null || running.signalCode !== null ? Promise.resolve() : once(running, 'exit');
      await stopProcess(pid, signal);
      await ended;
      forget(spec);
    },
    crash() {
      const pid = child?.pid;
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    },
  };
}
