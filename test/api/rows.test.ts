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
