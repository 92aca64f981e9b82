import { gzipSync } from 'node:zlib';

/**
 * What a build says: live in batches of lines, which may be lost, and kept whole up to a bound, head and tail, where the
 * reader is told what was cut. It is fed with output of commands, which see no secret, and with sentences of the builder.
 */
export interface BuildLog {
  /** Output of a command, cut anywhere. */
  write(chunk: Buffer): void;
  /** A line of the builder's own. */
  say(sentence: string): void;
  /** The first line since the step began that tells of a failure, else the last with content, or ''. */
  tellingLine(): string;
  beginStep(step: string): void;
  /** Ends the last line, sends what waits, and gives the kept text, compressed. No line is taken afterwards. */
  finish(): Promise<Buffer>;
}

export interface BuildLogOptions {
  /** Rejects where the lines could not be sent; they are tried again with the next. */
  publish(from: number, lines: string[]): Promise<void>;
  /** Bytes of head and of tail that are kept. */
  keepBytes?: number;
  flushMs?: number;
}

interface NumberedLine {
  number: number;
  line: string;
}

const LINE_MAX = 8_000;
const BATCH_LINES = 500;
const BATCH_CHARACTERS = 256 * 1024;
const WAITING_LINES = 4_000;
const FINISH_TRIES = 3;

export function createBuildLog({ publish, keepBytes = 2 << 20, flushMs = 300 }: BuildLogOptions): BuildLog {
  const decoder = new TextDecoder('utf-8');
  const head: string[] = [];
  const tail: string[] = [];
  let headBytes = 0;
  let tailBytes = 0;
  let cutLines = 0;

  let partial = '';
  let isOverlong = false;
  let lastLine = '';
  let firstFailure = '';

  let count = 0;
  let waiting: NumberedLine[] = [];
  let sending: Promise<void> | null = null;
  const timer = setInterval(() => void send(), flushMs);

  function keep(line: string): void {
    const bytes = Buffer.byteLength(line) + 1;
    if (headBytes + bytes <= keepBytes && tail.length === 0) {
      head.push(line);
      headBytes += bytes;
      return;
    }
    tail.push(line);
    tailBytes += bytes;
    let drop = 0;
    while (tailBytes > keepBytes && drop < tail.length - 1) tailBytes -= Buffer.byteLength(tail[drop++] ?? '') + 1;
    // Cut in bulk: shifting one by one is quadratic.
    if (drop > 0) cutLines += tail.splice(0, drop).length;
  }

  function take(raw: string): void {
    const line = cleanLine(raw);
    if (line.trim() !== '') lastLine = line;
    if (firstFailure === '' && tellsOfFailure(line)) firstFailure = line;
    record(line);
  }

  function record(line: string): void {
    keep(line);
    waiting.push({ number: count++, line });
    if (waiting.length <= WAITING_LINES) return;
    const dropped = waiting.splice(0, WAITING_LINES / 2);
    waiting.unshift({ number: dropped.at(-1)?.number ?? 0, line: '… lines before this came too fast to be shown live: the kept log has them' });
  }

  function send(): Promise<void> {
    sending ??= sendBatches().finally(() => {
      sending = null;
    });
    return sending;
  }

  async function sendBatches(): Promise<void> {
    // Bounded by what waits now; a build that writes on is served by the next turn.
    for (let turn = 0; waiting.length > 0 && turn < WAITING_LINES / BATCH_LINES; turn++) {
      const batch = nextBatch(waiting);
      waiting = waiting.slice(batch.length);
      try {
        await publish(
          batch[0]?.number ?? 0,
          batch.map((numbered) => numbered.line),
        );
      } catch {
        if (waiting.length + batch.length <= WAITING_LINES) waiting = [...batch, ...waiting];
        return;
      }
    }
  }

  return {
    write(chunk) {
      const pieces = (partial + decoder.decode(chunk, { stream: true })).split('\n');
      partial = pieces.pop() ?? '';
      for (const piece of pieces) {
        if (isOverlong) isOverlong = false;
        else take(piece);
      }
      if (partial.length > LINE_MAX) {
        if (!isOverlong) take(partial);
        isOverlong = true;
        partial = '';
      }
    },
    say(sentence) {
      record(cleanLine(`# ${sentence}`));
    },
    tellingLine() {
      if (firstFailure !== '') return firstFailure;
      return partial.trim() === '' || isOverlong ? lastLine : cleanLine(partial);
    },
    beginStep(step) {
      if (partial !== '') take(partial);
      partial = '';
      isOverlong = false;
      take(`# ${step}`);
      lastLine = '';
      firstFailure = '';
    },
    async finish() {
      if (partial !== '' && !isOverlong) take(partial);
      partial = '';
      clearInterval(timer);
      await sending;
      for (let tried = 0; tried < FINISH_TRIES && waiting.length > 0; tried++) await send();
      const cut = cutLines === 0 ? [] : [`… ${cutLines} lines are left out here: the log was longer than is kept`];
      return gzipSync([...head, ...cut, ...tail, ''].join('\n'));
    },
  };
}

/** The longest beginning that is small enough for one message and numbered without a gap. */
function nextBatch(waiting: readonly NumberedLine[]): NumberedLine[] {
  const first = waiting[0]?.number ?? 0;
  let characters = 0;
  const end = waiting.findIndex(({ number, line }, i) => {
    characters += line.length;
    return i >= BATCH_LINES || number !== first + i || (i > 0 && characters > BATCH_CHARACTERS);
  });
  return end === -1 ? [...waiting] : waiting.slice(0, end);
}

const ESC = '\u001b';
const COLOUR = new RegExp(`${ESC}\\[[0-9;]*m`, 'g');
const CONTROL = new RegExp(`${ESC}\\[[0-9;?]*[A-Za-z]|${ESC}\\][^\\u0007]*\\u0007|[\\u0000-\\u0008\\u000b-\\u001f\\u007f]`, 'g');

/** Without what a terminal or the store would stumble over; colours stay. */
function cleanLine(raw: string): string {
  const end = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
  // A progress bar redraws its line: only what was last seen counts.
  const shown = end.slice(end.lastIndexOf('\r') + 1);
  const clean = shown.replace(CONTROL, (found) => (found.endsWith('m') ? found : ''));
  if (clean.length <= LINE_MAX) return clean;
  return `${clean.slice(0, LINE_MAX).replace(/[\ud800-\udbff]$/, '')}… (cut)`;
}

/** One line without colours, for a reason. */
export function plainLine(line: string, most = 200): string {
  const plain = line.replace(COLOUR, '').replace(/\s+/g, ' ').trim();
  return plain.length > most ? `${plain.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…` : plain;
}

/** As compilers and test runners of any language put it; a bare FAIL or a count of none says nothing. */
function tellsOfFailure(line: string): boolean {
  if (!/\b(fail(ed|ure)?|error|panic|fatal|exception|not ok)\b|[✕✖✗]|: error\b|error\[/i.test(line)) return false;
  return line.trim().split(/\s+/).length > 1 && !/\b(0|no) (errors?|fail(ed|ures)?)\b|\bfail(ed|ures)?:? 0\b/i.test(line);
}
