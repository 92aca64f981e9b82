/**
 * How long work shows itself: on a terminal a spinner for each step that runs, with what it waits for, under the lines
 * of those that ended; in a pipe one plain line a step. Steps may run side by side.
 */
import { createColors } from 'picocolors';
import stringWidth from 'string-width';
import { plainReporter, type StepReporter } from '../servers';

export interface Progress extends StepReporter {
  /** A line of its own, above the steps that run. */
  line(text: string): void;
}

/** Wide enough for the names of servers and nodes, so that details line up. */
const TITLE_WIDTH = 10;
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 100;

export function hasColours(out: NodeJS.WriteStream): boolean {
  // A pipe has no isTTY at all, and picocolors takes undefined for «as you think best».
  return out.isTTY === true && (process.env.NO_COLOR ?? '') === '';
}

/** The progress that suits `out`. */
export function progress(out: NodeJS.WriteStream): Progress {
  if (out.isTTY && process.env.TERM !== 'dumb') return liveProgress(out);
  return { ...plainReporter(out), line: (text) => void out.write(`${text}\n`) };
}

interface Running {
  readonly title: string;
  readonly began: number;
  detail: string;
}

function liveProgress(out: NodeJS.WriteStream): Progress {
  const { green, red, dim, cyan } = createColors(hasColours(out));
  const running = new Set<Running>();
  let painted = 0;
  let frame = 0;
  let timer: NodeJS.Timeout | null = null;

  const text = (step: Running): string =>
    `${step.title.padEnd(TITLE_WIDTH)} ${step.detail}  ${dim(`${((performance.now() - step.began) / 1_000).toFixed(1)} s`)}`;

  /** One write a repaint, so that nothing flickers: back over the spinners, the new lines, the spinners again. */
  function paint(lines: readonly string[]): void {
    const spinners = [...running].map((step) => cutTo(`${cyan(FRAMES[frame % FRAMES.length] ?? '')} ${text(step)}`, out.columns));
    const back = painted === 0 ? '' : `\u001b[${painted}A\r\u001b[J`;
    out.write(`${back}${[...lines, ...spinners].map((line) => `${line}\n`).join('')}`);
    painted = spinners.length;
  }

  function tick(): void {
    frame += 1;
    paint([]);
  }

  return {
    line: (line) => paint([line]),
    async step(title, run) {
      const step: Running = { title, began: performance.now(), detail: '' };
      running.add(step);
      timer ??= setInterval(tick, FRAME_MS).unref();
      const end = (mark: string): void => {
        running.delete(step);
        if (running.size === 0 && timer !== null) {
          clearInterval(timer);
          timer = null;
        }
        paint([`${mark} ${text(step)}`]);
      };
      try {
        const result = await run((said) => {
          step.detail = said;
        });
        end(green('✓'));
        return result;
      } catch (error) {
        step.detail ||= 'failed';
        end(red('✗'));
        throw error;
      }
    },
  };
}

/** A spinner's line never wraps: a wrapped line could not be painted over. */
function cutTo(line: string, columns: number): string {
  if (stringWidth(line) < columns) return line;
  let cut = line;
  while (cut.length > 0 && stringWidth(cut) >= columns - 1) cut = cut.slice(0, -1);
  return `${cut}\u001b[0m…`;
}
