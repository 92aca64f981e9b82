/** A program that runs, is started again when it ends, and is started anew when its spec or what it stands on has changed. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import type { shapes } from '../../schema/declaration';
import { runCommand } from '../command';
import { Overtaken, ResourceFailed } from '../failures';
import { codeOf } from '../root';
import type { LastWords } from '../runner';
import type { HostContext, Shape } from '../shape';

type Spec = z.infer<typeof shapes.service>;
type Ready = NonNullable<Spec['ready']>;

interface Memo {
  readonly name: string;
}

const PROBE_WITHIN_MS = 3_000;
const PROBE_EVERY_MS = 100;

export const service: Shape<Spec, Memo> = {
  target: (spec) => spec.name,

  async read({ spec, print, entry, earlier, signal }, host) {
    const running = await host.services.find(spec.name);
    if (running === null) return { holds: false, why: withLastWords('it does not run', await host.services.lastWords(spec.name)) };
    if (running.print !== print) return { holds: false, why: 'it runs as it was declared before' };
    if (running.change < earlier) return { holds: false, why: 'it runs since before something that it stands on was changed' };
    const trouble = spec.ready === undefined ? null : await probe(spec.ready, host, signal);
    return trouble === null
      ? { holds: true, memo: entry?.memo ?? { name: spec.name } }
      : { holds: false, why: `process ${running.pid} runs and is not ready: ${trouble}` };
  },

  async apply({ spec, print, signal, intend }, host) {
    const { root, services } = host;
    const environmentFile = spec.environmentFile === undefined ? null : checkedEnvironment(spec.environmentFile, host);
    const change = intend({ name: spec.name });
    const run = {
      name: spec.name,
      command: spec.run.map(root.fill),
      env: Object.fromEntries(Object.entries(spec.env).map(([key, value]) => [key, root.fill(value)])),
      environmentFile,
      directory: spec.directory === undefined ? root.path : locate(spec.directory, host),
      stopWithinMs: spec.stopWithin,
    };
    await services.start(run, { print, change });
    if (spec.ready === undefined) await settle(spec.name, host, signal);
    else await becomeReady(spec.name, spec.ready, host, signal);
  },

  async remove({ name }, host) {
    await host.services.stop(name);
  },
};

/** As declared, not as links lead: what is swapped under a link is found where it is then. */
function locate(directory: string, { root }: HostContext): string {
  root.locate(directory);
  return join(root.path, directory);
}

/** The same to a shell and to systemd: both read it, and quotes would be read otherwise by each. Nothing of it is ever said. */
function checkedEnvironment(target: string, { root }: HostContext): string {
  const { path } = root.locate(target);
  let lines: string[];
  try {
    lines = readFileSync(path, 'utf8').split('\n');
  } catch (error) {
    throw new ResourceFailed(`its environment file ${path} cannot be read: ${codeOf(error)}`);
  }
  const wrong = lines.findIndex((line) => !/^(#.*|\s*|[A-Za-z_][A-Za-z0-9_]*=([^\s"'\\]([^"'\\]*[^\s"'\\])?)?)$/.test(line));
  if (wrong !== -1) throw new ResourceFailed(`line ${wrong + 1} of its environment file ${path} is not NAME=value without quotes or backslashes`);
  return path;
}

/** Up, and still the same process after a while. */
async function settle(name: string, { services, settleMs }: HostContext, signal: AbortSignal): Promise<void> {
  const until = Date.now() + settleMs;
  let first: string | null = null;
  do {
    await wait(Math.min(PROBE_EVERY_MS, settleMs), signal);
    const running = await services.find(name);
    const same = running === null ? null : `${running.pid} ${running.start}`;
    if (first !== null && same !== first) throw new ResourceFailed(withLastWords(`it ended within ${settleMs} ms`, await services.lastWords(name)));
    first ??= same;
  } while (Date.now() < until);
  if (first === null) throw new ResourceFailed(withLastWords('it does not stay up', await services.lastWords(name)));
}

async function becomeReady(name: string, ready: Ready, host: HostContext, signal: AbortSignal): Promise<void> {
  const until = Date.now() + ready.within;
  for (;;) {
    const running = await host.services.find(name);
    const trouble = running === null ? 'it does not run' : await probe(ready, host, signal);
    // Another program may have answered in its place.
    if (trouble === null && (await host.services.find(name))?.pid === running?.pid) return;
    if (Date.now() > until)
      throw new ResourceFailed(
        withLastWords(`it is not ready within ${ready.within} ms: ${trouble ?? 'it ends again and again'}`, await host.services.lastWords(name)),
      );
    await wait(PROBE_EVERY_MS, signal);
  }
}

/** @returns null when it is ready, else why not. */
async function probe({ http, tcp, exec, within }: Ready, { root }: HostContext, signal: AbortSignal): Promise<string | null> {
  if (signal.aborted) throw new Overtaken();
  const timeoutMs = Math.max(1, Math.min(within, PROBE_WITHIN_MS));
  if (http !== undefined) return probeHttp(root.fill(http), timeoutMs);
  if (tcp !== undefined) return probeTcp(root.fill(tcp), timeoutMs);
  if (exec === undefined) return null;
  const command = exec.map(root.fill);
  const { isDone, says } = await runCommand(command, { directory: root.path, timeoutMs, signal });
  return isDone ? null : `${command.join(' ')} ${says}`;
}

async function probeHttp(url: string, timeoutMs: number): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'manual' });
    await response.body?.cancel();
    return response.status < 400 ? null : `${url} answers ${response.status}`;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return `${url} does not answer: ${cause instanceof Error ? cause.message : String(cause)}`;
  }
}

function probeTcp(address: string, timeoutMs: number): Promise<string | null> {
  const [, host = '', port = ''] = /^(?:(.+):)?(\d+)$/.exec(address) ?? [];
  if (port === '') return Promise.resolve(`${address} is no host:port`);
  return new Promise((resolve) => {
    const socket = connect({ host: host === '' ? '127.0.0.1' : host.replace(/^\[|\]$/g, ''), port: Number(port), timeout: timeoutMs });
    const end = (trouble: string | null): void => {
      socket.destroy();
      resolve(trouble);
    };
    socket.once('connect', () => end(null));
    socket.once('timeout', () => end(`${address} does not accept within ${timeoutMs} ms`));
    socket.once('error', (error) => end(`${address} does not accept: ${error.message}`));
  });
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await pause(ms, undefined, { signal });
  } catch {
    throw new Overtaken();
  }
}

function withLastWords(what: string, { status, line }: LastWords): string {
  const ended = status === null ? what : `${what}; it ended with status ${status}`;
  return line === '' ? ended : `${ended}; its last line: ${line}`;
}
