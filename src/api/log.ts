/** The log of a request: live from the store while it runs, whole from the registry once it has ended. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { EnvironmentError } from '../domain/errors';
import { type LogCursor, type LogPart, latestRequest, readLog } from '../inventory';
import type { LogAnswer } from '../schema/api';
import type { ApiDeps } from './deps';
import { Problem } from './problems';
import { moduleNamed } from './verbs';

/** A builder keeps 4 MiB of a log at most. */
const LOG_MAX_BYTES = 16 << 20;

const unzip = promisify(gunzip);

interface Asked {
  Params: { name: string };
  Querystring: { build?: string; from?: string };
}

export function logRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const { db } = deps;

  app.get<Asked>('/modules/:name/log', async (request): Promise<LogAnswer> => {
    const { name } = request.params;
    const { build = null, from } = request.query;
    await moduleNamed(deps, name);
    const requestId = await latestRequest(db, name, build);
    const cursor = cursorOf(from);
    const part = requestId === null ? null : await readLog(db, requestId, cursor);
    if (part === null || part.module !== name) {
      throw new Problem(
        404,
        build === null
          ? `${name} has asked nothing of a builder yet: tally why ${name}`
          : `${name} has no build ${build}: tally module show ${name} lists them`,
      );
    }
    if (part.state !== 'answered' && part.state !== 'cancelled') return answer(part, part.lines, { isWhole: false, note: noteOf(part) });
    return await wholeLog(deps, part, cursor);
  });
}

async function wholeLog({ registry }: ApiDeps, part: LogPart, cursor: LogCursor | null): Promise<LogAnswer> {
  const kept = (note: string | null): LogAnswer => answer(part, part.lines, { isWhole: true, note });
  if (part.log === null) return kept(part.lines.length === 0 && cursor === null ? 'no log of it was kept' : null);
  try {
    const blob = await registry.getBlob(`tally/${part.module}`, part.log, LOG_MAX_BYTES);
    const text = (await unzip(blob, { maxOutputLength: LOG_MAX_BYTES })).toString('utf8');
    const all = text.split('\n').slice(0, -1);
    // Who followed it live has read it up to the cursor; an earlier attempt's lines are not in it.
    const isSameAttempt = cursor !== null && cursor.attempt === part.next.attempt;
    const lines = all.map((line, number) => ({ attempt: part.next.attempt, number, text: line })).slice(isSameAttempt ? cursor.number : 0);
    return answer({ ...part, next: { ...part.next, number: all.length } }, lines, { isWhole: true, note: null });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return kept(
      `the whole log could not be read, these are the lines that were seen live: ${error instanceof EnvironmentError ? reason : 'it is not in the form in which it was kept'}`,
    );
  }
}

function answer(part: LogPart, lines: LogPart['lines'], rest: { isWhole: boolean; note: string | null }): LogAnswer {
  const { request, kind, commit, state, verdict, next } = part;
  return { request, kind, commit, state, verdict, lines: lines.map((line) => line.text), next: `${next.attempt}.${next.number}`, ...rest };
}

function noteOf(part: LogPart): string | null {
  return part.state === 'taken' ? null : `the ${part.kind} waits for a builder`;
}

function cursorOf(from: string | undefined): LogCursor | null {
  if (from === undefined) return null;
  const [, attempt, number] = /^(\d{1,9})\.(\d{1,9})$/.exec(from) ?? [];
  if (attempt === undefined || number === undefined) throw new Problem(400, 'from: what the answer before gave as next, as in 1.200');
  return { attempt: Number(attempt), number: Number(number) };
}
