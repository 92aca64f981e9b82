import { gunzipSync } from 'node:zlib';
import { createBuildLog, plainLine } from '../../src/builder/log';
import { eventually } from '../support/eventually';

interface Batch {
  from: number;
  lines: string[];
}

function collecting(options: { fail?: () => boolean; keepBytes?: number } = {}) {
  const batches: Batch[] = [];
  const log = createBuildLog({
    flushMs: 10,
    ...(options.keepBytes === undefined ? {} : { keepBytes: options.keepBytes }),
    publish: async (from, lines) => {
      if (options.fail?.()) throw new Error('the broker is away');
      batches.push({ from, lines });
    },
  });
  const kept = async (): Promise<string[]> =>
    gunzipSync(await log.finish())
      .toString()
      .split('\n');
  return { log, batches, kept };
}

describe('the log of a build', () => {
  test('is sent line by line, numbered, however the output was cut', async () => {
    const { log, batches, kept } = collecting();
    log.beginStep('run');
    for (const piece of ['on', 'e\ntw', 'o\r\n', 'progress 1%\rprogress 100%\n', '\u001b[31mred\u001b[0m\u0007\0\n', 'ünd'])
      log.write(Buffer.from(piece));
    expect(log.tellingLine()).toBe('ünd');
    const lines = ['# run', 'one', 'two', 'progress 100%', '\u001b[31mred\u001b[0m', 'ünd'];
    expect(await kept()).toEqual([...lines, '']);
    expect(batches.flatMap((batch) => batch.lines)).toEqual(lines);
    expect(batches[0]?.from).toBe(0);
  });

  test.each([
    [
      'go test',
      '=== RUN TestGreeting\n--- FAIL: TestGreeting (0.00s)\n    board_test.go:31: greeted "x"\nFAIL\nFAIL\texample.org/board\t0.006s\nFAIL\n',
      '--- FAIL: TestGreeting (0.00s)',
    ],
    [
      'unittest',
      '.F\n======\nFAIL: test_names_the_node (test_greeting.Greeting)\nAssertionError\n\nFAILED (failures=1)\n',
      'FAIL: test_names_the_node (test_greeting.Greeting)',
    ],
    ['node --test', 'ok 1 - one\nnot ok 2 - the headline is short enough\n# fail 1\n', 'not ok 2 - the headline is short enough'],
    [
      'tsc',
      "src/a.ts(1,7): error TS2322: Type 'string' is not assignable\nFound 1 error.\n",
      "src/a.ts(1,7): error TS2322: Type 'string' is not assignable",
    ],
    ['what tells nothing', '0 errors, 0 failures\nbye for now\n', 'bye for now'],
  ])('finds the line that tells why: %s', async (_tool, output, line) => {
    const { log, kept } = collecting();
    log.beginStep('test');
    log.say('$ run --or fail with an error');
    log.write(Buffer.from(output));
    expect(log.tellingLine()).toBe(line);
    log.beginStep('next');
    expect(log.tellingLine()).toBe('');
    await kept();
  });

  test('puts a character together again that came in two pieces', async () => {
    const { log, kept } = collecting();
    const bytes = Buffer.from('grüße\n');
    log.write(bytes.subarray(0, 3));
    log.write(bytes.subarray(3));
    expect(await kept()).toEqual(['grüße', '']);
  });

  test('cuts a line without end and goes on after it', async () => {
    const { log, batches, kept } = collecting();
    for (let i = 0; i < 100; i++) log.write(Buffer.alloc(1_000, 'x'));
    log.write(Buffer.from('y\nnext\n'));
    const lines = await kept();
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^x{8000}… \(cut\)$/);
    expect(lines[1]).toBe('next');
    expect(batches.flatMap((batch) => batch.lines).every((line) => line.length <= 8_192)).toBe(true);
  });

  test('keeps head and tail, says what is cut, and sends at most 500 lines at once', async () => {
    const { log, batches, kept } = collecting({ keepBytes: 2_000 });
    for (let i = 0; i < 3_000; i++) log.write(Buffer.from(`line ${i}\n`));
    const lines = await kept();
    expect(lines[0]).toBe('line 0');
    expect(lines.at(-2)).toBe('line 2999');
    const cut = lines.find((line) => line.startsWith('…'));
    const [, left] = /^… (\d+) lines are left out/.exec(cut ?? '') ?? [];
    expect(Number(left) + lines.length - 2).toBe(3_000);
    expect(Math.max(...batches.map((batch) => batch.lines.length))).toBe(500);
    expect(batches.flatMap((batch) => batch.lines)).toHaveLength(3_000);
  });

  test('sends again what could not be sent, under the same numbers', async () => {
    let isAway = true;
    let refused = 0;
    const { log, batches, kept } = collecting({
      fail: () => {
        if (isAway) refused++;
        return isAway;
      },
    });
    log.write(Buffer.from('a\nb\n'));
    await eventually(() => {
      expect(refused).toBeGreaterThan(0);
      return true;
    });
    log.write(Buffer.from('c\n'));
    isAway = false;
    await kept();
    expect(batches.flatMap((batch) => batch.lines)).toEqual(['a', 'b', 'c']);
    expect(batches[0]?.from).toBe(0);
  });

  test('that comes faster than it can be sent leaves a gap that is said, and stays numbered', async () => {
    let isAway = true;
    const { log, batches, kept } = collecting({ fail: () => isAway });
    for (let i = 0; i < 10_000; i++) log.write(Buffer.from(`${i}\n`));
    isAway = false;
    expect(await kept()).toHaveLength(10_001);
    for (const { from, lines } of batches) {
      lines.forEach((line, i) => {
        if (!line.startsWith('…')) expect(line).toBe(String(from + i));
      });
    }
    expect(batches.flatMap((batch) => batch.lines).filter((line) => line.startsWith('…'))).toHaveLength(1);
    expect(batches.at(-1)?.lines.at(-1)).toBe('9999');
  });

  test('ends without the broker', async () => {
    const { log, kept } = collecting({ fail: () => true });
    log.write(Buffer.from('a\n'));
    expect(await kept()).toEqual(['a', '']);
  });
});

test('a reason is one short line without colours', () => {
  expect(plainLine('\u001b[31m  FAIL\t one\u001b[0m ')).toBe('FAIL one');
  expect(plainLine('x'.repeat(300))).toHaveLength(200);
});
