import { DemoFailure, type Stage, stage } from '../../src/demo/stage';

const plain = { bold: (text: string) => text, dim: (text: string) => text };

function shown(goOn: () => void = () => undefined): { lines: string[]; show: Stage } {
  const lines: string[] = [];
  const progress = {
    line: (text: string) => void lines.push(text),
    async step<T>(_title: string, run: (say: (detail: string) => void) => Promise<T>): Promise<T> {
      let detail = '';
      const result = await run((said) => {
        detail = said;
      });
      lines.push(`✓ ${detail}`);
      return result;
    },
  };
  return { lines, show: stage(progress, plain, goOn) };
}

test('a check looks until it is so', async () => {
  const { lines, show } = shown();
  let looks = 0;
  await show.check('alpha', 'answers 3', 5_000, async () => {
    looks += 1;
    return { isSo: looks === 3, says: `${looks}` };
  });
  expect(looks).toBe(3);
  expect(lines).toEqual(['✓ answers 3']);
});

test('a check that fails says what was expected and what was seen', async () => {
  const { show } = shown();
  const check = show.check('alpha', 'answers hello', 0, async () => ({ isSo: false, says: 'good bye' }));
  await expect(check).rejects.toThrow(new DemoFailure('expected: alpha answers hello\nseen after 0 s: good bye'));
});

test('a look that cannot be taken has not seen it, and the reason is what was seen', async () => {
  const { show } = shown();
  const check = show.check('alpha', 'answers hello', 0, () => Promise.reject(new Error('connection refused')));
  await expect(check).rejects.toThrow('seen after 0 s: connection refused');
});

test('nothing is waited for once the play is to end', async () => {
  let isOver = false;
  const { show } = shown(() => {
    if (isOver) throw new Error('over');
  });
  const check = show.check('alpha', 'answers hello', 60_000, async () => {
    isOver = true;
    return { isSo: false, says: 'not yet' };
  });
  await expect(check).rejects.toThrow('over');
});
