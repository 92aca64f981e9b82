import { spawn } from 'node:child_process';
import type { Command } from 'commander';
import { findPlace } from '../place';
import { answer, described, IN_STEP, type Json } from '../verb';

export function open(program: Command): void {
  described(program.command('open'), 'the board’s address; in a browser where there is one', ['tally open']).action((options: Json) => {
    const { url, file } = findPlace(process.env, process.cwd());
    const board = `${url}/`;
    const tokenIn = file ?? 'TALLY_TOKEN';
    answer({ board, tokenIn }, options, () => [board, `log in with the token in ${tokenIn}`], IN_STEP);
    if (!options.json && process.stdout.isTTY) show(board);
  });
}

/** A machine without a screen has no browser: the address was printed, and that is that. */
function show(url: string): void {
  const isMac = process.platform === 'darwin';
  if (!isMac && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY) return;
  const browser = spawn(isMac ? 'open' : 'xdg-open', [url], { detached: true, stdio: 'ignore' });
  browser.on('error', () => undefined);
  browser.unref();
}
