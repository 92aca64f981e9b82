/** Errors as answers: one line, the status that fits, and nothing of Tally's inside. */
import { closest, distance } from 'fastest-levenshtein';
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { EnvironmentError, UsageError } from '../domain/errors';

/** An answer that is no success: `message` is the one line that the caller reads. */
export class Problem extends Error {
  constructor(
    readonly statusCode: number,
    message: string,
  ) {
    super(message);
  }
}

/** What the caller sent, in the form that the schema says; else a Problem that names the key. */
export function parse<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? '' : `${issue.path.join('.')}: `;
  throw new Problem(400, `${where}${issue?.message ?? 'this is not what is expected here'}`);
}

/** @param what as in module */
export function unknown(what: string, name: string, known: readonly string[]): Problem {
  const meant = nearest(name, known);
  return new Problem(
    404,
    `there is no ${what} ${name.slice(0, 80)}${meant === null ? ` (tally ${what} list shows them)` : `: did you mean ${meant}?`}`,
  );
}

/** The one that was meant; null where none is like it. */
export function nearest(name: string, known: readonly string[]): string | null {
  const meant = known.length === 0 ? null : closest(name, [...known]);
  return meant !== null && distance(name, meant) <= Math.max(2, Math.floor(name.length / 3)) ? meant : null;
}

/** Every error of the API becomes `{ error }`; what nobody foresaw is logged and said without its inside. */
export function answerProblems(app: FastifyInstance): void {
  app.setErrorHandler((error: unknown, request, reply) => {
    const status = statusOf(error);
    if (status >= 500) request.log.error({ err: error, route: request.routeOptions.url }, 'a request could not be answered');
    const message =
      status === 500
        ? `Tally could not answer this (request ${request.id}): the log of the control plane says why`
        : oneLine(error instanceof Error ? error.message : String(error));
    return reply.code(status).send({ error: message });
  });
  app.setNotFoundHandler((request, reply) => reply.code(404).send({ error: `there is no ${request.method} ${oneLine(request.url).slice(0, 200)}` }));
}

function statusOf(error: unknown): number {
  if (error instanceof EnvironmentError) return 503;
  if (error instanceof UsageError) return 409;
  if (typeof error === 'object' && error !== null && 'statusCode' in error && typeof error.statusCode === 'number') return error.statusCode;
  return 500;
}

function oneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').trim();
}
