/**
 * The invariants of the design as checks of what was observed of a mesh at rest: its facts, its disks, its
 * broker. Pure, so that each check can be shown a state that breaks it.
 */

export interface ObservedModule {
  readonly module: string;
  /** What git itself says now, and what the facts hold. */
  readonly gitHead: string;
  readonly knownHead: string | null;
  /** The outcome for that head: a verdict, an invalid manifest, or none. */
  readonly headOutcome: 'fit' | 'failed' | 'invalid' | null;
  readonly isInStep: boolean;
  readonly situation: string | null;
  readonly reason: string | null;
  readonly since: string | null;
  readonly needsPerson: boolean;
}

export interface ObservedBuild {
  readonly build: string;
  readonly module: string;
  readonly commit: string;
  readonly verdict: 'fit' | 'failed' | null;
  /** Every answer stored for it, in the order in which they came. */
  readonly answers: readonly string[];
  /** True when the code at this commit was written to fail. */
  readonly isBroken: boolean;
}

export interface ObservedPlacement {
  readonly module: string;
  readonly node: string;
  readonly build: string | null;
  /** Commit of the declared build, of the effective one, and the one that the running service says it is. */
  readonly commit: string | null;
  readonly effectiveCommit: string | null;
  readonly answering: string | null;
  readonly wantDigest: string | null;
  readonly appliedDigest: string | null;
  readonly outstandingSince: string | null;
}

export interface ObservedNode {
  readonly node: string;
  readonly sentSequence: number | null;
  readonly ownSequence: number;
  readonly receivedSequence: number;
  /** The declarations written for it, and whether the broker confirmed them. */
  readonly declarations: ReadonlyArray<{ readonly sequence: number; readonly isConfirmed: boolean; readonly builds: readonly string[] }>;
  /** In the order of (epoch, number): the sequence each report is about; null where it refuses one. */
  readonly reports: ReadonlyArray<{ readonly epoch: string; readonly number: number; readonly signedFor: string; readonly sequence: number | null }>;
  readonly waits: ReadonlyArray<{ readonly what: string; readonly reason: string | null; readonly since: string | null }>;
  /** Files that were on the disk before Tally came: what they held, and what they hold now (null: gone). */
  readonly foreign: ReadonlyArray<{ readonly path: string; readonly before: string; readonly now: string | null }>;
  /** Declared files: digest as declared and as on the disk. */
  readonly files: ReadonlyArray<{ readonly path: string; readonly declared: string; readonly onDisk: string | null }>;
  /** Temporary files that a write left behind. */
  readonly leftovers: readonly string[];
}

export interface Observed {
  readonly modules: readonly ObservedModule[];
  readonly builds: readonly ObservedBuild[];
  readonly placements: readonly ObservedPlacement[];
  readonly nodes: readonly ObservedNode[];
  /** Requests that are not ended, with what is in their way. */
  readonly requests: ReadonlyArray<{ readonly request: string; readonly reason: string | null; readonly since: string | null }>;
  /** Marks of forged reports (written over another node's account) that were found among the facts. */
  readonly forgedFound: readonly string[];
  /** Where a secret was found in the clear: what and where. */
  readonly exposures: readonly string[];
  /** Processes that run twice, and messages that wait though everything is at rest. */
  readonly twice: readonly string[];
  readonly queued: ReadonlyArray<{ readonly queue: string; readonly messages: number }>;
}

export interface Invariant {
  readonly number: number;
  readonly says: string;
  /** @returns one line a violation. */
  check(observed: Observed): string[];
}

export const invariants: readonly Invariant[] = [
  { number: 1, says: 'nothing is declared whose build is not fit', check: onlyFitIsDeclared },
  { number: 2, says: 'every head of every tracked ref is judged', check: everyHeadIsJudged },
  { number: 3, says: 'no environmental failure is recorded as failed', check: onlyBrokenCodeFails },
  { number: 4, says: 'one verdict a build, whatever is answered twice', check: oneVerdictABuild },
  { number: 5, says: 'sent is confirmed, accepted never goes back', check: sentIsConfirmed },
  { number: 6, says: 'a host removes nothing of others and leaves nothing half written', check: disksAreWhole },
  { number: 7, says: 'a report counts only for the node that sent it', check: reportsAreTheirs },
  { number: 8, says: 'no secret is stored or shown in the clear', check: ({ exposures }) => [...exposures] },
  { number: 9, says: 'everything that waits says on what and since when', check: waitsAreSaid },
  { number: 10, says: 'the mesh is back in step', check: isBackInStep },
];

/** Every violation, with the invariant it breaks. */
export function checkInvariants(observed: Observed): string[] {
  return invariants.flatMap(({ number, says, check }) => check(observed).map((violation) => `invariant ${number} (${says}): ${violation}`));
}

function onlyFitIsDeclared({ builds, placements, nodes }: Observed): string[] {
  const fit = new Set(builds.filter(({ verdict }) => verdict === 'fit').map(({ build }) => build));
  const placed = placements.flatMap(({ module, node, build }) =>
    build === null || fit.has(build) ? [] : [`${module} on ${node} is declared with ${build}, which is not fit`],
  );
  const sent = nodes.flatMap(({ node, declarations }) =>
    declarations.flatMap(({ sequence, builds: named }) =>
      named.filter((build) => !fit.has(build)).map((build) => `declaration ${sequence} of ${node} names ${build}, which is not fit`),
    ),
  );
  return [...placed, ...sent];
}

function everyHeadIsJudged({ modules }: Observed): string[] {
  return modules.flatMap(({ module, gitHead, knownHead, headOutcome }) => {
    if (knownHead !== gitHead) return [`${module}: git says ${gitHead}, the facts say ${knownHead ?? 'nothing'}`];
    return headOutcome === null ? [`${module}: ${gitHead} has no verdict`] : [];
  });
}

function onlyBrokenCodeFails({ builds }: Observed): string[] {
  return builds
    .filter(({ verdict, isBroken }) => verdict === 'failed' && !isBroken)
    .map(({ build, module, commit }) => `${module}: ${build} of ${commit} failed, and its code does not`);
}

const ENDS: readonly string[] = ['fit', 'failed'];

function oneVerdictABuild({ builds }: Observed): string[] {
  return builds.flatMap(({ build, verdict, answers }) => {
    const first = answers.find((answer) => ENDS.includes(answer)) ?? null;
    return verdict === first
      ? []
      : [`${build} is ${verdict ?? 'without a verdict'}, its first answer was ${first ?? 'none'} (all: ${answers.join(', ')})`];
  });
}

function sentIsConfirmed({ nodes }: Observed): string[] {
  return nodes.flatMap(({ node, sentSequence, ownSequence, receivedSequence, declarations, reports }) => {
    const said: string[] = [];
    if (sentSequence !== null && !declarations.some(({ sequence, isConfirmed }) => sequence === sentSequence && isConfirmed)) {
      said.push(`${node} counts as sent ${sentSequence}, which the broker did not confirm`);
    }
    if (receivedSequence > ownSequence) said.push(`${node} received ${receivedSequence}, and only ${ownSequence} were made`);
    let highest = 0;
    let epoch: string | null = null;
    for (const report of reports) {
      if (report.epoch !== epoch) highest = 0;
      epoch = report.epoch;
      if (report.sequence === null) continue;
      if (report.sequence < highest) said.push(`${node} went back from ${highest} to ${report.sequence} in report ${report.number}`);
      highest = Math.max(highest, report.sequence);
    }
    return said;
  });
}

function disksAreWhole({ nodes }: Observed): string[] {
  return nodes.flatMap(({ node, foreign, files, leftovers }) => [
    ...foreign
      .filter(({ before, now }) => before !== now)
      .map(({ path, now }) => `${node}: ${path} was there before and is ${now === null ? 'gone' : 'changed'}`),
    ...files
      .filter(({ declared, onDisk }) => declared !== onDisk)
      .map(({ path, onDisk }) => `${node}: ${path} is ${onDisk === null ? 'missing' : 'not what is declared'}`),
    ...leftovers.map((path) => `${node}: ${path} was left half written`),
  ]);
}

function reportsAreTheirs({ nodes, forgedFound }: Observed): string[] {
  return [
    ...forgedFound.map((mark) => `a forged report was taken in: ${mark}`),
    ...nodes.flatMap(({ node, reports }) =>
      reports.filter(({ signedFor }) => signedFor !== node).map(({ number, signedFor }) => `report ${number} of ${node} is signed for ${signedFor}`),
    ),
  ];
}

function waitsAreSaid({ modules, placements, nodes, requests }: Observed): string[] {
  const isSaid = (text: string | null): boolean => text !== null && text.trim() !== '';
  return [
    ...modules
      .filter(({ isInStep, reason, since }) => !isInStep && !(isSaid(reason) && isSaid(since)))
      .map(
        ({ module, situation, reason, since }) =>
          `${module} is ${situation ?? 'nothing'} and says on what "${reason ?? ''}" and since when "${since ?? ''}"`,
      ),
    ...placements
      .filter(({ wantDigest, appliedDigest, outstandingSince }) => wantDigest !== null && wantDigest !== appliedDigest && outstandingSince === null)
      .map(({ module, node }) => `${module} on ${node} is outstanding and says no since`),
    ...nodes.flatMap(({ node, waits }) =>
      waits.filter(({ reason, since }) => !(isSaid(reason) && isSaid(since))).map(({ what }) => `${node}: ${what} says no reason or no since`),
    ),
    ...requests.filter(({ since }) => !isSaid(since)).map(({ request }) => `request ${request} says no since`),
  ];
}

function isBackInStep({ modules, placements, twice, queued }: Observed): string[] {
  return [
    ...modules
      .filter(
        ({ isInStep, headOutcome, situation }) =>
          !isInStep && !(headOutcome === 'failed' && situation === 'failed') && !(headOutcome === 'invalid' && situation === 'invalid'),
      )
      .map(({ module, situation, reason }) => `${module} is ${situation ?? 'not compared'}: ${reason ?? ''}`),
    ...placements.flatMap(({ module, node, commit, effectiveCommit, answering, wantDigest, appliedDigest }) => {
      if (commit !== effectiveCommit)
        return [`${module} on ${node} is declared with ${commit ?? 'nothing'}, effective is ${effectiveCommit ?? 'nothing'}`];
      if (wantDigest !== appliedDigest) return [`${module} on ${node} is not applied`];
      return answering === commit ? [] : [`${module} on ${node} answers ${answering ?? 'nothing'}, declared is ${commit ?? 'nothing'}`];
    }),
    ...twice,
    ...queued.filter(({ messages }) => messages > 0).map(({ queue, messages }) => `${messages} messages wait in ${queue}`),
  ];
}
