import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Answer } from '../schema/messages';
import { answer } from '../schema/messages';

/**
 * What this builder has answered, on disk before it is sent: a request that comes again, because the answer or its
 * acknowledgement was lost, gets the same answer and no second build.
 */
export interface Journal {
  /** The answer to this very attempt, or the verdict on an earlier one, which ends the build whatever was asked since. */
  find(request: string, attempt: number): Answer | null;
  append(answer: Answer): Promise<void>;
}

const KEPT = 500;
const KEPT_BYTES = 16 << 20;

export async function openJournal(directory: string): Promise<Journal> {
  const path = join(directory, 'journal.jsonl');
  let entries = await read(path);
  let lines = KEPT * 2;
  let appending: Promise<void> = Promise.resolve();

  async function write(entry: Answer): Promise<void> {
    entries = bounded([...entries.filter((other) => !isSame(other, entry)), entry]);
    if (lines >= KEPT * 2) {
      await rewrite(path, entries);
      lines = entries.length;
      return;
    }
    const file = await open(path, 'a', 0o600);
    try {
      await file.appendFile(`${JSON.stringify(entry)}\n`);
      await file.datasync();
      lines++;
    } finally {
      await file.close();
    }
  }

  return {
    find(request, attempt) {
      const mine = entries.filter((entry) => entry.request === request);
      const same = mine.find((entry) => entry.attempt === attempt);
      if (same !== undefined) return same;
      const verdict = mine.find((entry) => entry.attempt < attempt && entry.outcome !== 'environment' && entry.outcome !== 'cancelled');
      return verdict === undefined ? null : { ...verdict, attempt };
    },
    append(entry) {
      const written = appending.then(() => write(entry));
      // One that failed is the failure of its caller alone.
      appending = written.catch(() => undefined);
      return written;
    },
  };
}

function isSame(a: Answer, b: Answer): boolean {
  return a.request === b.request && a.attempt === b.attempt;
}

/** The newest that fit. */
function bounded(entries: Answer[]): Answer[] {
  let bytes = 0;
  const last = entries.slice(-KEPT).reverse();
  const end = last.findIndex((entry) => {
    bytes += JSON.stringify(entry).length;
    return bytes > KEPT_BYTES;
  });
  return (end === -1 ? last : last.slice(0, Math.max(1, end))).reverse();
}

/** A line that a kill cut off was never sent either: it is passed over. */
async function read(path: string): Promise<Answer[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const entries = new Map<string, Answer>();
  for (const line of text.split('\n')) {
    const parsed = answer.safeParse(parse(line));
    if (parsed.success) entries.set(`${parsed.data.request}/${parsed.data.attempt}`, parsed.data);
  }
  return bounded([...entries.values()]);
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

async function rewrite(path: string, entries: Answer[]): Promise<void> {
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const folder = await open(dirname(path), 'r');
  await folder.sync().finally(() => folder.close());
}
