import type { BuilderBeat, Claim, ClaimReply } from '../schema/messages';
import type { Db } from './db';
/** Atomic: of all who claim an attempt exactly one gets `go`, and the same one again. */
export declare function claimRequest(db: Db, claim: Claim, now: Date): Promise<ClaimReply>;
/** Set-based: the builders' rows and the requests they are at. */
export declare function beatRequests(db: Db, beats: readonly BuilderBeat[], now: Date): Promise<void>;
