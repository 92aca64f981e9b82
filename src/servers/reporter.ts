import { createColors } from 'picocolors';
import type { StepReporter } from './types';

/** One plain line a step: a mark, the title, what was done, how long it took. Colour only on a terminal without NO_COLOR. */
export function plainReporter(out: NodeJS.WritableStream): StepReporter {
  const isTerminal = 'isTTY' in out && out.isTTY === true;
  const { green, red, dim } = createColors(isTerminal && (process.env.NO_COLOR ?? '') === '');
  return {
    async step(title, run) {
      const began = performance.now();
      const seconds = () => dim(`${((performance.now() - began) / 1000).toFixed(1)} s`);
      let detail = '';
      try {
        const result = await run((said) => {
          detail = said;
        });
        out.write(`${green('✓')} ${title.padEnd(10)} ${detail}  ${seconds()}\n`);
        return result;
      } catch (error) {
        out.write(`${red('✗')} ${title.padEnd(10)} ${detail || 'failed'}  ${seconds()}\n`);
        throw error;
      }
    },
  };
}
