/**
 * A process apart that parses files: a parser is native code, and a file that is nested a few thousand times deep ends the process that reads it.
 * On stdin what to read; on stdout a line of JSON when it is ready and one for each file, in order, so that the line which is missing names the file.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { parseJavaScript } from './javascript';
import type { Outcome, Parse, Request } from './types';

/** Beyond the limit of a parser: enough to say whether a file matters. */
const MOST_BYTES = 32 << 20;

async function main(): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  const { parser, root, files } = JSON.parse(Buffer.concat(chunks).toString()) as Request;
  const parse = await parserOf(parser);
  await say({ ready: true });
  for (const { path, raw } of files) {
    await say(outcome(parse, path, contentOf(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(raw, 'base64')]))));
  }
}

async function parserOf(parser: Request['parser']): Promise<Parse<unknown>> {
  return parser === 'javascript' ? parseJavaScript : (await import('./rust.js')).rustParser();
}

/** Follows no link and waits for no pipe. Nothing else is to be done here meanwhile. */
function contentOf(path: Buffer): Buffer | null {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = fstatSync(file);
    return found.isFile() && found.size <= MOST_BYTES ? readFileSync(file) : null;
  } finally {
    closeSync(file);
  }
}

function outcome(parse: Parse<unknown>, path: string, bytes: Buffer | null): Outcome<unknown> {
  if (bytes === null) return broken(`is larger than ${MOST_BYTES >> 20} MiB and is not read`);
  try {
    return parse(path, bytes);
  } catch (error) {
    // The stack of JavaScript has an end too.
    if (error instanceof RangeError) return broken('is nested too deeply to be read');
    // A parser that threw may be in any state: the file ends it, as if by a signal.
    process.abort();
  }
}

function broken(reason: string): Outcome<unknown> {
  return { uses: [], computed: [], broken: { line: 1, reason } };
}

function say(line: object): Promise<void> {
  return new Promise((resolve, reject) => process.stdout.write(`${JSON.stringify(line)}\n`, (error) => (error ? reject(error) : resolve())));
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
