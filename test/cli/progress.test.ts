import { PassThrough } from 'node:stream';
import { hasColours, progress } from '../../src/cli/progress';

/** A terminal of 40 columns, or a pipe, whose output is kept. */
function output(isTTY: boolean): { stream: NodeJS.WriteStream; text: () => string } {
  const through = new PassThrough();
  const chunks: string[] = [];
  through.on('data', (chunk: Buffer) => chunks.push(chunk.toString()));
  return { stream: Object.assign(through, { isTTY, columns: 40 }) as unknown as NodeJS.WriteStream, text: () => chunks.join('') };
}

async function work(stream: NodeJS.WriteStream): Promise<void> {
  const { step, line } = progress(stream);
  await step('alpha', async (say) => {
    say('waits');
    line('said between');
    say('answers');
  });
  await expect(
    step('beta', async () => {
      throw new Error('boom');
    }),
  ).rejects.toThrow('boom');
}

const before = { ...process.env };
beforeEach(() => {
  process.env.TERM = 'xterm';
});
afterEach(() => {
  process.env = { ...before };
});

test('in a pipe each step is one plain line', async () => {
  const { stream, text } = output(false);
  await work(stream);
  expect(text().replace(/\d+\.\d s/g, 'T')).toBe('said between\n✓ alpha      answers  T\n✗ beta       failed  T\n');
});

test('on a terminal what runs is painted over by what has ended', async () => {
  process.env.NO_COLOR = '';
  const { stream, text } = output(true);
  await work(stream);
  expect(text()).toContain('\u001b[32m✓');
  // The spinner under the line that was said between is taken back before the end of the step is written.
  const [, afterFirst] = text().split('\u001b[1A\r\u001b[J');
  expect(afterFirst).toContain('alpha      answers');
});

test('NO_COLOR takes the colours and leaves the rest', async () => {
  process.env.NO_COLOR = '1';
  const { stream, text } = output(true);
  await work(stream);
  expect(text()).toContain('✓ alpha      answers');
  expect(text()).not.toContain('\u001b[32m');
});

test('a pipe has no colours, though it does not say that it is no terminal', () => {
  expect(hasColours(new PassThrough() as unknown as NodeJS.WriteStream)).toBe(false);
});
