/**
 * The loops of the control plane: what comes from the broker becomes facts, facts become signals and sends. A message is
 * acknowledged after it is stored; whatever is lost in between, a pass finds in the facts.
 */
import { type Consumer, declareTopology } from '../link';
import { consumeAnswers, consumeBuilderBeats, consumeClaims, consumeLogs } from './builders';
import { consumeDead } from './dead';
import type { ControlDeps, Running } from './deps';
import { type EnsureOptions, startEnsurePass } from './ensure';
import { consumeNodeBeats, consumeReports } from './nodes';
import { startNudgePass } from './nudges';
import { startRequestPass } from './requests';
import { startSender } from './sender';

export { restoreAccounts } from './accounts';
export type { ControlDeps, Running } from './deps';
export { createPasses } from './passes';
export { createSourceReader, type SourceReader } from './sources';

/** Those that most builders have; others get their queue when a builder brings them. */
const FIRST_PLATFORMS = ['linux-amd64', 'linux-arm64'];

export interface Control extends Running {
  /** Facts moved that someone waits for: the nudge pass need not wait its second. */
  wakeNudges(): void;
}

/** Needs the broker once, to declare the topology; afterwards each part waits for what is away. */
export async function startControl(deps: ControlDeps, ensure: EnsureOptions): Promise<Control> {
  const platforms = new Set(FIRST_PLATFORMS);
  await declareTopology(deps.link, { platforms });
  const consumers: Consumer[] = await Promise.all([
    consumeDead(deps),
    consumeClaims(deps),
    consumeAnswers(deps),
    consumeBuilderBeats(deps, platforms),
    consumeLogs(deps),
    consumeNodeBeats(deps),
    consumeReports(deps),
  ]);
  const nudges = startNudgePass(deps);
  const loops: Running[] = [startSender(deps), nudges, startRequestPass(deps), startEnsurePass(deps, ensure)];
  return {
    wakeNudges: () => nudges.wake(),
    async stop() {
      await Promise.all([...consumers, ...loops].map((one) => one.stop()));
    },
  };
}
