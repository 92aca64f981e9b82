/** Services as units of systemd, for a root host of a whole machine. They outlive the host because systemd runs them. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EnvironmentError } from '../domain/errors';
import type { RunSpec, ServiceRunner, StartedFrom } from './runner';

const run = promisify(execFile);
const UNITS = '/etc/systemd/system';
const CALL_WITHIN_MS = 30_000;

export function systemdRunner(state: string, units = UNITS): ServiceRunner {
  const unitOf = (name: string): string => `tally-${name}.service`;
  // Written once systemd has started it: a kill in between starts it once more.
  const recordOf = (name: string): string => join(state, 'services', `${name}.json`);

  return {
    async find(name) {
      const from = readRecord(recordOf(name));
      const properties = await show(unitOf(name));
      if (from === null || properties.get('ActiveState') !== 'active' || properties.get('UnitFileState') !== 'enabled') return null;
      return { pid: Number(properties.get('MainPID') ?? 0), start: properties.get('ExecMainStartTimestampMonotonic') ?? '', ...from };
    },
    async start(spec, { print, change }) {
      rmSync(recordOf(spec.name), { force: true });
      const path = join(units, unitOf(spec.name));
      writeFileSync(`${path}.new`, unitText(spec), { mode: 0o600 });
      renameSync(`${path}.new`, path);
      await systemctl(spec.stopWithinMs, 'daemon-reload');
      await systemctl(spec.stopWithinMs, 'enable', unitOf(spec.name));
      // One that ends at once fails this too: that, and why, is read from the unit after.
      await systemctl(spec.stopWithinMs, 'restart', unitOf(spec.name)).catch(async (error: unknown) => {
        if ((await show(unitOf(spec.name))).get('ExecMainStatus') === '0') throw error;
      });
      mkdirSync(join(state, 'services'), { recursive: true, mode: 0o700 });
      const from: StartedFrom = { print, change };
      writeFileSync(recordOf(spec.name), JSON.stringify(from), { mode: 0o600 });
    },
    async stop(name) {
      const path = join(units, unitOf(name));
      if (existsSync(path)) {
        const stopWithin = /^TimeoutStopSec=(\d+)ms$/m.exec(readFileSync(path, 'utf8'))?.[1];
        await systemctl(Number(stopWithin ?? 0), 'disable', '--now', unitOf(name));
        rmSync(path);
        await systemctl(0, 'daemon-reload');
        // One that failed is remembered until then; where it did not, there is nothing to forget.
        await systemctl(0, 'reset-failed', unitOf(name)).catch(() => undefined);
      }
      rmSync(recordOf(name), { force: true });
    },
    async lastWords(name) {
      // What the program itself said, and not what systemd says of it.
      const args = [`_SYSTEMD_UNIT=${unitOf(name)}`, '--lines', '1', '--output', 'cat', '--no-pager'];
      const { stdout } = await run('journalctl', args, { timeout: CALL_WITHIN_MS }).catch(() => ({ stdout: '' }));
      const properties = await show(unitOf(name));
      const hasEnded = properties.get('ActiveState') !== 'active' && properties.get('ExecMainStatus') !== undefined;
      return { status: hasEnded ? Number(properties.get('ExecMainStatus')) : null, line: stdout.trim() };
    },
  };
}

/** Ends all units that a host with this state directory has started; they stay enabled. */
export async function stopUnits(state: string): Promise<void> {
  const services = join(state, 'services');
  if (!existsSync(services)) return;
  const records = readdirSync(services).filter((name) => name.endsWith('.json'));
  for (const record of records) await systemctl(CALL_WITHIN_MS, 'stop', `tally-${record.slice(0, -'.json'.length)}.service`);
}

export function unitText({ name, command, env, environmentFile, directory, stopWithinMs }: RunSpec): string {
  const [program = '', ...args] = command;
  // An absolute path needs no shell; any other is looked up as a shell would.
  const words = program.startsWith('/') ? command : ['/usr/bin/env', program, ...args];
  return [
    '[Unit]',
    `Description=${name}, kept by Tally`,
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${words.map((word) => quoted(word)).join(' ')}`,
    `WorkingDirectory=${directory.replaceAll('%', '%%')}`,
    ...Object.entries(env).map(([key, value]) => `Environment=${quoted(`${key}=${value}`, false)}`),
    ...(environmentFile === null ? [] : [`EnvironmentFile=${environmentFile.replaceAll('%', '%%')}`]),
    'Restart=always',
    'RestartSec=1s',
    `TimeoutStopSec=${stopWithinMs}ms`,
    'KillMode=mixed',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n');
}

/** A word as systemd reads it: specifiers and, in commands, variables are taken literally. */
function quoted(word: string, isCommand = true): string {
  const escaped = word.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('%', '%%');
  return `"${isCommand ? escaped.replaceAll('$', '$$$$') : escaped}"`;
}

async function show(unit: string): Promise<Map<string, string>> {
  const { stdout } = await run(
    'systemctl',
    ['show', unit, '--property', 'ActiveState,MainPID,UnitFileState,ExecMainStartTimestampMonotonic,ExecMainStatus'],
    {
      timeout: CALL_WITHIN_MS,
    },
  );
  return new Map(stdout.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}

async function systemctl(stopWithinMs: number, ...args: string[]): Promise<void> {
  try {
    await run('systemctl', args, { timeout: CALL_WITHIN_MS + stopWithinMs });
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim().split('\n').at(-1) : String(error);
    throw new EnvironmentError(`systemctl ${args.join(' ')} failed: ${said}`);
  }
}

function readRecord(path: string): StartedFrom | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as StartedFrom;
  } catch {
    return null;
  }
}
