/** From what is stored to what people read. */
import { moduleRow } from '../../src/api/rows';
import type { ModuleStatus } from '../../src/inventory';

const inStep: ModuleStatus = {
  module: 'kiosk',
  repository: '/srv/kiosk.git',
  ref: 'main',
  head: 'a'.repeat(40),
  situation: 'in step',
  verdict: 'fit',
  next: 'nothing',
  line: 'source aaaaaaa · built from aaaaaaa · fit · declared on 3 · applied on 3',
  reason: 'source, built, declared and applied agree',
  since: null,
  comparedAt: '2026-11-29T14:02:00.000Z',
  needsPerson: false,
  inStep: true,
  isHeld: false,
  hasWebhook: false,
  counts: { placements: 3, declared: 3, applied: 3, outstanding: 0, stuck: 0 },
};

test('a head that git has said and nothing has been compared with yet is not in step', () => {
  expect(moduleRow(inStep).urgency).toBe('in step');
  expect(moduleRow({ ...inStep, head: 'b'.repeat(40) }).urgency).toBe('moving');
});

test('a row of what waits for an input says for which, and a cycle is looked at in the graph', () => {
  const waiting = 'source aaaaaaa · waiting for core (building on builder-1) since 2026-11-29T14:02Z · declared on 3 · applied on 3';
  const moving = moduleRow({ ...inStep, situation: 'waiting', next: 'wait', inStep: false, line: waiting });
  expect(moving).toMatchObject({ urgency: 'moving', remedy: null });
  expect(moving.headline).toContain('waiting for core (building on builder-1) since');
  const missing = 'source aaaaaaa · waiting for core (has had no fit build yet) since 2026-11-29T14:02Z · on no node';
  const needy = moduleRow({ ...inStep, situation: 'waiting', next: 'wait', inStep: false, needsPerson: true, line: missing });
  expect(needy.headline).toBe('waiting for core (has had no fit build yet) since 2026-11-29T14:02Z');
  const reason = 'kiosk → core → kiosk is a cycle of build edges: none of them is built until one import is gone';
  const cycle = moduleRow({ ...inStep, situation: 'cycle', inStep: false, needsPerson: true, line: 'source aaaaaaa', reason });
  expect(cycle).toMatchObject({ urgency: 'needs you', remedy: 'tally graph kiosk', headline: `cycle: ${reason}` });
});
