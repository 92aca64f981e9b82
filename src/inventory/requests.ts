import type { Input } from '../schema/messages';
import type { Db } from './db';

export type BeginPublish =
  | { readonly kind: 'publish'; readonly routingKey: string; readonly body: object; readonly attempt: number }
  | { readonly kind: 'done'; readonly outcome: string }
  | { readonly kind: 'running' }
  | { readonly kind: 'later'; readonly reason: string; readonly delayMs: number };
export interface BuildAsked {
  readonly module: string;
  readonly commit: string;
  readonly closure: string;
  readonly platform: string;
  readonly inputs: readonly Input[];
  readonly askedBy: string | null;
}
/** The id of the new or the already open inspection; null when the commit is not the head any more or is inspected. */
export declare function openInspection(db: Db, module: string, commit: string): Promise<string | null>;
/** The id of the new or the already open build; null when head or closure moved, or it has its verdict and nobody asked again. */
export declare function openBuild(db: Db, asked: BuildAsked): Promise<string | null>;
export declare function beginPublish(db: Db, requestId: string, now: Date): Promise<BeginPublish>;
export declare function markPublished(db: Db, requestId: string, attempt: number): Promise<void>;
export declare function recordPublishFailure(db: Db, requestId: string, reason: string, now: Date): Promise<void>;
/** What has not started is cancelled; what runs is told to stop. */
export declare function cancelRequests(db: Db, ids: readonly string[], reason: string): Promise<void>;
