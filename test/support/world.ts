/**
 * One module's facts in memory, with the same comparison and the same act-then-look as the real decisions, so that the
 * workflow's own logic is what is tested. Completions go through the real client, as an answer's consumer does it.
 */
import { CompleteAsyncError } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { advance, type Steps } from '../../activities/advance';
import { compare } from '../../src/domain/comparison';
import type { Comparison, Facts, RequestFacts } from '../../src/domain/facts';
import { defaultTimes } from '../../src/domain/times';
import type { Ask, Asked, Decisions, Verb } from '../../workflows/shared';
import { build, inStep, inspection, placement, request } from './facts';

export class World {
  facts: Facts;
  isRemoved = false;
  looks = 0;
  declared: string[] = [];
  cancelled: string[] = [];
  /** Every time a request was published: its id, as often as it was asked. */
  asked: string[] = [];
  intents: Array<{ verb: Verb; ask: Ask }> = [];
  private counter = 0;

  constructor(module: string, changes: Partial<Facts> = {}) {
    this.facts = inStep({ module, ...changes });
  }

  change(changes: Partial<Facts>): void {
    this.facts = { ...this.facts, ...changes, version: this.facts.version + 1 };
  }

  move(commit: string): void {
    const head = { commit, since: new Date().toISOString() };
    this.change({ source: { ...this.facts.source, head }, inspection: null, closure: null, headBuild: null });
  }

  compare(): Comparison {
    return compare({ ...this.facts, now: new Date().toISOString() }, defaultTimes);
  }

  open(): RequestFacts | undefined {
    return this.facts.requests.find((one) => one.commit === this.facts.source.head?.commit);
  }

  /** What the answer's consumer stores; the activity is completed after. */
  storeAnswer(id: string, verdict: 'fit' | 'failed' = 'fit'): void {
    const found = this.facts.requests.find((one) => one.id === id);
    if (found === undefined) return;
    const requests = this.facts.requests.filter((one) => one.id !== id);
    this.change({ requests });
    if (found.commit !== this.facts.source.head?.commit) return;
    if (found.kind === 'inspect') {
      this.change({ inspection: inspection({ commit: found.commit }), closure: `closure-${found.commit[0]}` });
      return;
    }
    const headBuild = build({
      id: `build-${found.commit[0]}`,
      commit: found.commit,
      closure: this.facts.closure ?? '',
      verdict,
      reason: verdict === 'failed' ? 'exit status 1' : null,
    });
    this.change({ headBuild, again: null, ...(verdict === 'fit' ? { effective: headBuild } : {}) });
  }

  apply(node: string): void {
    this.change({ placements: this.facts.placements.map((one) => (one.node === node ? { ...one, isApplied: true, outstandingSince: null } : one)) });
  }

  activities(): Decisions & Asked {
    return { ...this.decisions(), inspect: (id) => this.ask(id), build: (id) => this.ask(id) };
  }

  private async ask(id: string): Promise<string> {
    this.asked.push(id);
    if (!this.facts.requests.some((one) => one.id === id)) return 'already answered';
    throw new CompleteAsyncError();
  }

  private decisions(): Decisions {
    return {
      advance: () => advance(this.steps()),
      carryOut: async (_module, verb, ask) => {
        if (ask.why === 'refuse me') throw ApplicationFailure.nonRetryable('there is no such build', 'Refused');
        if (!this.intents.some((one) => one.ask.id === ask.id)) this.intents.push({ verb, ask });
        if (verb === 'hold') this.change({ hold: { by: ask.who, why: ask.why, at: new Date().toISOString(), buildId: null } });
        if (verb === 'release') this.change({ hold: null });
        if (verb === 'rebuild') this.change({ again: { by: ask.who, at: new Date().toISOString() } });
        return `${verb} is in force`;
      },
    };
  }

  private steps(): Steps {
    return {
      compare: async () => {
        this.looks += 1;
        return this.isRemoved ? null : this.compare();
      },
      record: async () => undefined,
      openRequest: async ({ next }) => {
        if (next.kind !== 'inspect' && next.kind !== 'build') return false;
        this.counter += 1;
        const opened = request({
          id: `${next.kind}-${next.commit[0]}-${this.counter}`,
          kind: next.kind,
          commit: next.commit,
          closure: next.kind === 'build' ? next.closure : null,
          state: 'published',
          takenBy: null,
          takenAt: null,
        });
        this.change({ requests: [...this.facts.requests, opened] });
        return true;
      },
      declare: async ({ next }) => {
        if (next.kind !== 'declare') return false;
        this.declared.push(next.buildId);
        const declared = {
          build: { id: next.buildId, commit: next.commit },
          isApplied: false,
          outstandingSince: new Date().toISOString(),
          waitingOn: 'node' as const,
        };
        this.change({
          placements: this.facts.placements.map((one) => (next.nodes.includes(one.node) ? placement(one.node, { ...one, ...declared }) : one)),
        });
        return true;
      },
      cancel: async (ids) => {
        this.cancelled.push(...ids);
        this.change({ requests: this.facts.requests.filter((one) => !ids.includes(one.id)) });
      },
      now: () => new Date(),
    };
  }
}
