import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { aptInstall, canApt } from '../../src/servers/apt';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/usr/bin/google-chrome-stable'];

/** A browser of this machine: TALLY_BROWSER, else one of the usual places, else installed where we may. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = findBrowser() ?? (await installed());
  return await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });
}

function findBrowser(): string | null {
  const { TALLY_BROWSER: told } = process.env;
  if (told) return told;
  return PLACES.find((place) => existsSync(place)) ?? null;
}

async function installed(): Promise<string> {
  const reason = canApt() ? await aptInstall(['chromium']) : 'it can only be installed by root on a Debian';
  const found = findBrowser();
  if (found === null)
    throw new Error(`the board is tested in a browser and there is none (${reason}): apt-get install chromium, or set TALLY_BROWSER to one`);
  return found;
}
