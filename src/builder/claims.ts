import { setTimeout as wait } from 'node:timers/promises';
import type { Link } from '../link';
import { EXCHANGES, ROUTES } from '../link';
import type { BuildRequest, ClaimReply, InspectRequest } from '../schema/messages';
import { claimReply } from '../schema/messages';

/** Asking the control plane whether a request is still wanted, and from this builder. No answer is no permission. */
export interface Claims {
  /** `null`: no reply, or none that can be read. */
  ask(request: InspectRequest | BuildRequest): Promise<ClaimReply | null>;
  /** The wait before a request goes back that nobody replied to; longer each time, until a reply comes. */
  pause(): Promise<void>;
  /** Ends early when the builder ends. */
  sleep(ms: number): Promise<void>;
}

const REPLY_TIMEOUT_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;
const MOST_PAUSE_MS = 30_000;

export function createClaims(options: { link: Link; builder: string; platforms: readonly string[]; ending: AbortSignal }): Claims {
  let pauseMs = FIRST_PAUSE_MS;
  const sleep = async (ms: number): Promise<void> => {
    await wait(ms, undefined, { signal: options.ending }).catch(() => undefined);
  };
  return {
    async ask(request) {
      const platform = request.kind === 'build' ? request.platform : (options.platforms[0] ?? '');
      const claim = { v: 1, request: request.request, attempt: request.attempt, builder: options.builder, platform };
      const reply = claimReply.safeParse(await options.link.request(EXCHANGES.builders, ROUTES.claim, claim, { timeoutMs: REPLY_TIMEOUT_MS }));
      if (!reply.success) return null;
      pauseMs = FIRST_PAUSE_MS;
      return reply.data;
    },
    async pause() {
      const ms = pauseMs;
      pauseMs = Math.min(pauseMs * 2, MOST_PAUSE_MS);
      await sleep(ms);
    },
    sleep,
  };
}
