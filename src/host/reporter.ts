/** Reports leave in the order of their numbers, each until the broker has confirmed it: at once, and again after a reconnect. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Link, nodeExchange, ROUTES, sign } from '../link';
import { NODE_MESSAGE_TYPE, type NodeReport } from '../schema/messages';
import type { Journal } from './journal';
import type { HostLog } from './log';

export interface Reporter {
  /** Journalled when this returns; sent as soon as there is a link. */
  add(report: Omit<NodeReport, 'v' | 'type' | 'node' | 'epoch' | 'number' | 'at'>): void;
  stop(): Promise<void>;
}

export interface ReporterDeps {
  readonly link: Link;
  readonly journal: Journal;
  readonly node: string;
  readonly privateKey: string;
  readonly log: HostLog;
}

const RETRY_FIRST_MS = 200;
const RETRY_MOST_MS = 10_000;

export function startReporter({ link, journal, node, privateKey, log }: ReporterDeps): Reporter {
  const ending = new AbortController();
  let sending: Promise<void> | null = null;

  async function send(): Promise<void> {
    let waitMs = RETRY_FIRST_MS;
    for (;;) {
      const [report] = journal.reports.values();
      if (report === undefined || ending.signal.aborted) return;
      try {
        await link.publish(nodeExchange(node), ROUTES.report, sign(NODE_MESSAGE_TYPE, report, privateKey));
        journal.note({ t: 'sent', number: report.number });
        waitMs = RETRY_FIRST_MS;
      } catch (error) {
        if (ending.signal.aborted) return;
        log.warn({ node, report: report.number, error: String(error) }, 'a report could not be sent, is tried again');
        await pause(waitMs, undefined, { signal: ending.signal }).catch(() => undefined);
        waitMs = Math.min(waitMs * 2, RETRY_MOST_MS);
      }
    }
  }

  function kick(): void {
    sending ??= send().finally(() => {
      sending = null;
    });
  }

  kick();
  return {
    add(report) {
      const numbered: NodeReport = {
        v: 1,
        type: 'report',
        node,
        epoch: journal.epoch,
        number: journal.lastReport + 1,
        at: new Date().toISOString(),
        ...report,
      };
      journal.write({ t: 'report', report: numbered });
      kick();
    },
    async stop() {
      ending.abort();
      await sending;
    },
  };
}
