import { request as plain } from 'node:http';
import { request as secure } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * Sends a body as it is read. Node's `fetch` takes a stream and keeps all of it in memory when the other side is slower
 * than the disk, so what may be large goes this way.
 */
export function sendStreamed(
  url: URL,
  { method, headers, body, signal }: { method: string; headers: Record<string, string>; body: AsyncIterable<Buffer>; signal: AbortSignal },
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const outgoing = (url.protocol === 'https:' ? secure : plain)(url, { method, headers, signal });
    outgoing.once('response', (incoming) => {
      const answered = new Headers();
      for (const [name, values] of Object.entries(incoming.headersDistinct)) for (const value of values ?? []) answered.append(name, value);
      const status = incoming.statusCode ?? 500;
      const hasBody = status !== 204 && status !== 205 && status !== 304;
      if (!hasBody) incoming.resume();
      const content = hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null;
      resolve(new Response(content, { status, headers: answered }));
    });
    outgoing.once('error', reject);
    // After an answer the promise is settled: one that comes before all was sent ends the sending, and that is no error.
    pipeline(Readable.from(body), outgoing).catch((error: unknown) => reject(signal.aborted ? signal.reason : error));
  });
}
