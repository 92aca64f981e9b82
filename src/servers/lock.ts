import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * A lock that the kernel releases when its holder dies, however it dies: an abstract socket can be bound once.
 * Null when someone else holds it.
 */
export function tryLock(subject: string): Promise<{ release(): Promise<void> } | null> {
  const name = createHash('sha256').update(subject).digest('hex').slice(0, 32);
  return new Promise((resolve, reject) => {
    const server: Server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null);
      else reject(error);
    });
    server.listen({ path: `\0tally-${name}` }, () => {
      server.unref();
      resolve({ release: () => new Promise((released) => server.close(() => released())) });
    });
  });
}

/** Runs `work` alone among all processes of this machine; gives up after `timeoutMs` of waiting. */
export async function withLock<T>(subject: string, timeoutMs: number, work: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const lock = await tryLock(subject);
    if (lock !== null) {
      try {
        return await work();
      } finally {
        await lock.release();
      }
    }
    if (Date.now() > deadline) throw new Error(`waited ${Math.round(timeoutMs / 1000)} s for another process at ${subject}`);
    await pause(200);
  }
}
