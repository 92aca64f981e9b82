import type { Times } from '../domain/times';
import type { Answer } from '../schema/messages';
import type { Db } from './db';

export interface Recorded {
  /** False when this (request, attempt) had been answered before. */
  readonly first: boolean;
  /** null: no such request. */
  readonly module: string | null;
  /** True when the request has ended; false when it will be tried again. */
  readonly final: boolean;
  /** valid, invalid, fit, failed, cancelled or environment. */
  readonly outcome: string;
  readonly retry: { readonly reason: string; readonly delayMs: number } | null;
}
/** One transaction: the answer, what it says, and what is effective by it. Fit and failed end a build, the first wins. */
export declare function recordAnswer(db: Db, answer: Answer, now: Date, times: Times): Promise<Recorded>;

export interface Overdue {
  readonly module: string;
  readonly request: string;
  readonly reason: string;
  readonly delayMs: number;
}
export interface OverdueRequests {
  /** Taken without a beat: already set to be tried again; fail their activities retryably. */
  readonly lost: readonly Overdue[];
  /** Ought to have been published and were not: fail their activities retryably. */
  readonly unpublished: readonly Overdue[];
  /** Ended, and not yet marked completed: complete their activities, then markCompleted. */
  readonly ended: ReadonlyArray<{ readonly module: string; readonly request: string; readonly outcome: string }>;
  /** Published, not claimed, though a builder for them beats: publish again as given. */
  readonly unclaimed: ReadonlyArray<{ readonly module: string; readonly request: string; readonly attempt: number; readonly routingKey: string; readonly body: object }>;
}
export declare function overdueRequests(db: Db, now: Date, times: Times): Promise<OverdueRequests>;
/** The activities of these requests have been completed. */
export declare function markCompleted(db: Db, requestIds: readonly string[]): Promise<void>;
