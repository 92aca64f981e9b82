import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { withLock } from './lock';
import { lastLine, onPath, run } from './run';

const APT_TIMEOUT_MS = 300_000;
const POLICY = '/usr/sbin/policy-rc.d';
/** Told apart from a policy that the machine has by itself: only this one is taken away again. */
const OUR_POLICY = '#!/bin/sh\n# put here by tally while it installs packages\nexit 101\n';

export function isDebian(): boolean {
  return existsSync('/etc/debian_version') && onPath('apt-get') !== null;
}

export function canApt(): boolean {
  return isDebian() && process.getuid?.() === 0;
}

/**
 * Installs packages without starting the services that they bring: Tally runs its own. Null when all went well,
 * else the reason.
 */
export async function aptInstall(packages: string[]): Promise<string | null> {
  return await withLock('apt', APT_TIMEOUT_MS, async () => {
    const restore = forbidServices();
    try {
      const args = ['-y', '-q', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=240', 'install', ...packages];
      const first = await apt(args);
      if (!first.ok) {
        // A machine whose package lists are old or missing.
        await apt(['-q', 'update']);
        const second = await apt(args);
        if (!second.ok) return `apt-get install ${packages.join(' ')}: ${lastLine(second.stderr)}`;
      }
      if (existsSync('/run/systemd/system')) {
        await run('systemctl', ['disable', '--now', ...packages], { timeoutMs: 60_000 });
      }
      return null;
    } finally {
      restore();
    }
  });
}

function apt(args: string[]): ReturnType<typeof run> {
  // setsid: a Ctrl-C that ends us must not cut dpkg off in the middle.
  return run('setsid', ['-w', 'apt-get', ...args], {
    timeoutMs: APT_TIMEOUT_MS,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

function forbidServices(): () => void {
  if (existsSync(POLICY) && readFileSync(POLICY, 'utf8') !== OUR_POLICY) return () => undefined;
  writeFileSync(POLICY, OUR_POLICY);
  chmodSync(POLICY, 0o755);
  return () => rmSync(POLICY, { force: true });
}
