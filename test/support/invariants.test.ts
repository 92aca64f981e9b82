import { checkInvariants, invariants, type Observed } from './invariants';

const head = 'a'.repeat(40);
const older = 'b'.repeat(40);

/** A mesh in step: one module on one node, one older failed build of broken code. */
const sound: Observed = {
  modules: [
    {
      module: 'core',
      gitHead: head,
      knownHead: head,
      headOutcome: 'fit',
      isInStep: true,
      situation: 'in step',
      reason: 'all agree',
      since: null,
      needsPerson: false,
    },
  ],
  builds: [
    { build: 'b1', module: 'core', commit: older, verdict: 'failed', answers: ['environment', 'failed', 'failed'], isBroken: true },
    { build: 'b2', module: 'core', commit: head, verdict: 'fit', answers: ['fit', 'failed'], isBroken: false },
  ],
  placements: [
    {
      module: 'core',
      node: 'alpha',
      build: 'b2',
      commit: head,
      effectiveCommit: head,
      answering: head,
      wantDigest: 'd',
      appliedDigest: 'd',
      outstandingSince: null,
    },
  ],
  nodes: [
    {
      node: 'alpha',
      sentSequence: 2,
      ownSequence: 3,
      receivedSequence: 2,
      declarations: [
        { sequence: 1, isConfirmed: false, builds: ['b2'] },
        { sequence: 2, isConfirmed: true, builds: ['b2'] },
      ],
      reports: [
        { epoch: 'e1', number: 1, signedFor: 'alpha', sequence: 1 },
        { epoch: 'e1', number: 2, signedFor: 'alpha', sequence: null },
        { epoch: 'e1', number: 3, signedFor: 'alpha', sequence: 2 },
      ],
      waits: [],
      foreign: [{ path: '/etc/theirs', before: 'x', now: 'x' }],
      files: [{ path: '/etc/core', declared: 'y', onDisk: 'y' }],
      leftovers: [],
    },
  ],
  requests: [],
  forgedFound: [],
  exposures: [],
  twice: [],
  queued: [{ queue: 'reports', messages: 0 }],
};

const [inStep] = sound.modules;
const [failed, fit] = sound.builds;
const [placement] = sound.placements;
const [node] = sound.nodes;
if (inStep === undefined || failed === undefined || fit === undefined || placement === undefined || node === undefined)
  throw new Error('the sound state lacks a row');

test('a mesh in step breaks no invariant', () => {
  expect(checkInvariants(sound)).toEqual([]);
});

const violations: Array<[number, string, Partial<Observed>]> = [
  [1, 'a failed build is declared', { placements: [{ ...placement, build: 'b1' }] }],
  [
    1,
    'a declaration names a build without a verdict',
    { nodes: [{ ...node, declarations: [...node.declarations, { sequence: 3, isConfirmed: true, builds: ['b3'] }] }] },
  ],
  [2, 'a commit was never seen', { modules: [{ ...inStep, knownHead: older }] }],
  [2, 'a head has no verdict', { modules: [{ ...inStep, headOutcome: null }] }],
  [3, 'a lost build counts as failed', { builds: [failed, { ...fit, verdict: 'failed', answers: ['failed'] }] }],
  [4, 'a second answer replaced the verdict', { builds: [{ ...failed, answers: ['fit', 'failed'] }, fit] }],
  [4, 'a verdict came from nowhere', { builds: [failed, { ...fit, answers: ['environment'] }] }],
  [5, 'sent names an unconfirmed declaration', { nodes: [{ ...node, sentSequence: 1 }] }],
  [5, 'a node received what was never made', { nodes: [{ ...node, receivedSequence: 9 }] }],
  [5, 'a node went back', { nodes: [{ ...node, reports: [...node.reports, { epoch: 'e1', number: 4, signedFor: 'alpha', sequence: 1 }] }] }],
  [6, "another's file was removed", { nodes: [{ ...node, foreign: [{ path: '/etc/theirs', before: 'x', now: null }] }] }],
  [6, 'a file is half written', { nodes: [{ ...node, files: [{ path: '/etc/core', declared: 'y', onDisk: 'z' }] }] }],
  [6, 'a temporary file was left', { nodes: [{ ...node, leftovers: ['/etc/core.tmp'] }] }],
  [7, "another node's report was taken in", { nodes: [{ ...node, reports: [{ epoch: 'e1', number: 1, signedFor: 'beta', sequence: 1 }] }] }],
  [7, 'a forged mark is among the facts', { forgedFound: ['forged-1'] }],
  [8, 'a secret stands in a log', { exposures: ['the token of ops stands in control.log'] }],
  [
    9,
    'a module waits without a reason',
    { modules: [{ ...inStep, isInStep: false, situation: 'failed', headOutcome: 'failed', reason: '', since: null }] },
  ],
  [9, 'an outstanding node says no since', { placements: [{ ...placement, appliedDigest: 'other' }] }],
  [9, 'a failing send says no since', { nodes: [{ ...node, waits: [{ what: 'send', reason: 'nack', since: null }] }] }],
  [9, 'a request says no since', { requests: [{ request: 'r1', reason: 'lost', since: null }] }],
  [10, 'a module is still building', { modules: [{ ...inStep, isInStep: false, situation: 'building', since: 'then' }] }],
  [10, 'an older version answers', { placements: [{ ...placement, answering: older }] }],
  [10, 'what is declared is not what is effective', { placements: [{ ...placement, effectiveCommit: older }] }],
  [10, 'a service runs twice', { twice: ['core runs twice on alpha'] }],
  [10, 'messages wait for ever', { queued: [{ queue: 'answers', messages: 4 }] }],
];

test.each(violations)('invariant %i sees it when %s', (number, _when, change) => {
  const found = checkInvariants({ ...sound, ...change });
  expect(found.some((line) => line.startsWith(`invariant ${number} `))).toBe(true);
});

test('every invariant of the design has been seen to fail', () => {
  const shown = new Set(violations.map(([number]) => number));
  expect(invariants.map(({ number }) => number)).toEqual([...shown].sort((a, b) => a - b));
});
