/** The little of a comparison that returns into history. */
import type { Comparison, Next } from '../src/domain/facts';
import { short } from '../src/domain/line';
import type { Look } from '../workflows/shared';

export function toLook(comparison: Comparison): Look {
  const { next } = comparison;
  return {
    next: next.kind,
    about: aboutOf(next),
    requestId: 'requestId' in next ? next.requestId : null,
    buildId: 'buildId' in next ? next.buildId : null,
    cancel: comparison.cancel,
    line: comparison.line,
    reason: comparison.reason,
    situation: comparison.situation,
    verdict: comparison.verdict,
    since: comparison.since,
    until: comparison.until,
    outstanding: comparison.counts.outstanding,
    placements: comparison.counts.placements,
    isStuck: comparison.counts.stuck > 0,
    atRest: next.kind === 'nothing',
  };
}

function aboutOf(next: Next): string | null {
  if (next.kind === 'wait') return next.on;
  return 'commit' in next ? short(next.commit) : null;
}
