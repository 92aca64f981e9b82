import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import type { LogAnswer } from '../../schema/api';
import { short } from '../shown';
import { colours } from '../text';
import { api, described, IN_STEP, type Json, NOT_IN_STEP, path } from '../verb';

interface Options extends Json {
  readonly build?: string;
  readonly follow?: true;
}

const EVERY_MS = 700;
const ESC = '\u001b';
const COLOUR = new RegExp(`${ESC}\\[[0-9;]*m`, 'g');
const CONTROL = new RegExp(`${ESC}\\[[0-9;]*m|\\p{Cc}`, 'gu');

export function log(program: Command): void {
  described(program.command('log <module>'), 'what the newest build or inspection of a module said; of another one with --build', [
    'tally log kiosk',
    'tally log kiosk -f',
    'tally log kiosk --build 9c1f0e2',
  ])
    .option('-f, --follow', 'go on until it has ended')
    .option('--build <build>', 'a build by its id or the start of its commit')
    .action(async (module: string, options: Options) => {
      const server = api();
      const asked = options.build === undefined ? '' : `build=${encodeURIComponent(options.build)}&`;
      let part = await server.get<LogAnswer>(`${path('modules', module, 'log')}?${asked}`);
      head(part, options);
      show(part, options);
      // Ends with the build: what follows one request does not turn to the next.
      const request = `build=${encodeURIComponent(part.request)}&`;
      while (options.follow && !part.isWhole) {
        await pause(EVERY_MS);
        part = await server.get<LogAnswer>(`${path('modules', module, 'log')}?${request}from=${part.next}`);
        show(part, options);
      }
      process.exitCode = part.verdict === 'failed' ? NOT_IN_STEP : IN_STEP;
    });
}

function head(part: LogAnswer, options: Json): void {
  if (options.json) return;
  const verdict = part.verdict === null ? part.state : part.verdict;
  process.stderr.write(`${colours.dim(`${part.kind} ${part.request} of ${short(part.commit)}: ${verdict}`)}\n`);
}

function show(part: LogAnswer, options: Json): void {
  if (options.json) {
    process.stdout.write(`${JSON.stringify(part)}\n`);
    return;
  }
  if (part.note !== null && part.lines.length === 0) process.stderr.write(`${part.note}\n`);
  if (part.lines.length > 0) process.stdout.write(`${part.lines.map(clean).join('\n')}\n`);
}

/** Colours of the build's own on a terminal; nothing else that a terminal would obey. */
function clean(line: string): string {
  const safe = line.replace(CONTROL, (found) => (found === '\t' || found.startsWith(`${ESC}[`) ? found : ''));
  return colours.isColorSupported ? `${safe}${safe.includes(ESC) ? `${ESC}[0m` : ''}` : safe.replace(COLOUR, '');
}
