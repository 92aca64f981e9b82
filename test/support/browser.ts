import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/usr/bin/google-chrome-stable'];
const INSTALL_TIMEOUT_MS = 300_000;

/** A browser of this machine: TALLY_BROWSER, else one of the usual places, else installed where we may. */
export async function openBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath: findBrowser() ?? installed(), args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });
}

function findBrowser(): string | null {
  const { TALLY_BROWSER: told } = process.env;
  if (told) return told;
  return PLACES.find((place) => existsSync(place)) ?? null;
}

function installed(): string {
  const isDebianRoot = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');
  if (isDebianRoot) {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    spawnSync('apt-get', ['update', '-q'], { env, timeout: INSTALL_TIMEOUT_MS });
    spawnSync('apt-get', ['install', '-y', '-q', '--no-install-recommends', 'chromium'], { env, timeout: INSTALL_TIMEOUT_MS });
  }
  const found = findBrowser();
  if (found === null) throw new Error('the board is tested in a browser and there is none: apt-get install chromium, or set TALLY_BROWSER to one');
  return found;
}
