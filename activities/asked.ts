/** Asks a builder over the broker and leaves: the answer completes the activity from outside. */
import { CompleteAsyncError } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { EnvironmentError } from '../src/domain/errors';
import type { Db } from '../src/inventory/db';
import { beginPublish, markPublished, recordPublishFailure } from '../src/inventory/requests';
import type { Asked } from '../workflows/shared';

export interface AskedDeps {
  readonly db: Db;
  /** Resolves once the broker has confirmed; rejects with an EnvironmentError. */
  readonly publishRequest: (routingKey: string, body: object) => Promise<void>;
  readonly now: () => Date;
}

export function createAsked(deps: AskedDeps): Asked {
  const { db, publishRequest, now } = deps;

  async function ask(requestId: string): Promise<string> {
    const begun = await beginPublish(db, requestId, now());
    switch (begun.kind) {
      case 'done':
        return begun.outcome;
      case 'running':
        throw new CompleteAsyncError();
      case 'later':
        throw retryable(begun.reason, begun.delayMs);
      case 'publish':
        break;
    }
    try {
      await publishRequest(begun.routingKey, begun.body);
    } catch (error) {
      if (!(error instanceof EnvironmentError)) throw error;
      await recordPublishFailure(db, requestId, error.message, now());
      throw error;
    }
    await markPublished(db, requestId, begun.attempt);
    throw new CompleteAsyncError();
  }

  return { inspect: ask, build: ask };
}

function retryable(reason: string, delayMs: number): ApplicationFailure {
  return ApplicationFailure.create({ message: reason, type: 'Environment', nonRetryable: false, nextRetryDelay: delayMs });
}
