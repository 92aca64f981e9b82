/**
 * The demo: commits become running software on three machines, through nothing but git, the CLI and the API. Each scene
 * says what it does, shows the result line, and checks what it claims by asking the machines themselves.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LocalMesh } from '../processes';
import { packageRoot } from '../servers/places';
import { Ports } from '../servers/ports';
import { CHANGES, type Change, CORE_CHANGES, type Edit, MODULES, NODES, ON_CORE, PLACED, SERVICES, SHARED } from './examples';
import { answerOf, digestsOf, fitBuilds, isBuiltOnceMore, isDelivered, isUntouched, type Mesh, newestFit, resultLine, sentTo, shown } from './looks';
import type { DemoMarker } from './marker';
import { type DemoRepository, demoRepository } from './repositories';
import { DemoFailure, type Seen, type Stage } from './stage';
import { meshOf, type Tally, tallyCommand } from './tally';

/** The first delivery builds every module from empty caches. */
const FIRST_MS = 420_000;
const DELIVERY_MS = 60_000;
/** An answer may be asked for before a service has been started again. */
const ANSWER_MS = 15_000;

interface Play {
  readonly local: LocalMesh;
  readonly tally: Tally;
  readonly mesh: Mesh;
  readonly stage: Stage;
  readonly repository: (module: string) => DemoRepository;
  readonly port: (node: string, module: string) => number;
}

/** @param mark keeps how far it has come, and which nodes there are, so that the next start runs their hosts. */
export async function playDemo(local: LocalMesh, stage: Stage, mark: (marker: DemoMarker) => Promise<void>): Promise<void> {
  const play = await setUp(local, stage);
  await mark({ nodes: NODES, state: 'prepared' });
  await firstDelivery(play);
  await mark({ nodes: NODES, state: 'playing' });
  await newCommit(play);
  await failingCommit(play);
  await mendingCommit(play);
  await nodeOff(play);
  await builderKilled(play);
  await sharedCode(play);
  await changeThatStops(play);
  await changeThatComesOutTheSame(play);
  await mark({ nodes: NODES, state: 'played' });
}

/** Also after an interrupted play: what is there already is used as it is. */
async function setUp(local: LocalMesh, stage: Stage): Promise<Play> {
  const { demo, home } = local.places;
  const tally = tallyCommand(home);
  const mesh = meshOf(home);
  stage.scene('Six modules, three machines');
  const repositories = new Map<string, DemoRepository>();
  for (const module of MODULES) repositories.set(module, await demoRepository(demo, join(packageRoot(), 'examples', module), module));
  stage.did(`a git repository each of ${MODULES.join(', ')} in ${demo}`);

  const ports = new Ports(demo);
  const port = (node: string, module: string): number => ports.last(`${node}-${module}`) ?? 0;
  const { nodes, modules } = await mesh.status();
  for (const module of MODULES) {
    if (!modules.some((row) => row.module === module)) await tally('module', 'add', module, repositories.get(module)?.address ?? '');
  }
  for (const node of NODES) {
    if (!nodes.some((row) => row.node === node)) {
      const facts: string[] = [];
      for (const { module } of SERVICES) facts.push('--set', `${module}.port=${await ports.free(`${node}-${module}`)}`);
      await tally('node', 'add', node, ...facts);
    }
    await local.host(node).start();
  }
  stage.did(`tally module add … · tally node add ${NODES.join(', ')}, each with the ports of its services · three hosts run`);
  for (const module of PLACED) {
    for (const node of NODES) await tally('assign', module, node);
  }
  stage.did(`tally assign, ${PLACED.join(', ')} to every node; on ${SHARED.join(' and ')} the others build`);
  return {
    local,
    tally,
    mesh,
    stage,
    port,
    repository: (module) => {
      const found = repositories.get(module);
      if (found === undefined) throw new Error(`there is no example ${module}`);
      return found;
    },
  };
}

async function firstDelivery(play: Play): Promise<void> {
  const { stage, mesh } = play;
  stage.scene('The first delivery of all');
  const heads = new Map<string, string>();
  for (const module of MODULES) heads.set(module, await play.repository(module).head());
  for (const module of MODULES) {
    const expected = SHARED.includes(module) ? 'is fit, for others to build on' : `is in step on ${NODES.length} nodes`;
    const head = heads.get(module) ?? '';
    const watch = watchVerdict(mesh, module, head, 'whoever builds on another one waits for that, and does not fail without it');
    await stage.check(module, expected, FIRST_MS, () => watch(isDelivered(mesh, module, head)));
  }
  for (const module of MODULES) stage.result(await resultLine(mesh, module));
  for (const { module, path, first } of SERVICES) await checkAnswers(play, NODES, module, path, first);
  for (const node of NODES) {
    const page = join(play.local.places.nodes, node, 'root', 'opt', 'site', 'index.html');
    await stage.check(node, 'holds the site', ANSWER_MS, async () => ({ isSo: existsSync(page), says: `${page} is not there` }));
  }
}

async function newCommit(play: Play): Promise<void> {
  const { stage } = play;
  stage.scene('A new commit to meshboard');
  const { module, path, before } = CHANGES.first;
  for (const node of NODES) stage.did(`${node} answers ${JSON.stringify(excerpt(await answerOf(play.port(node, module), path), before))}`);
  const commit = await push(play, CHANGES.first);
  await stage.check(module, `is in step at ${commit.slice(0, 7)} on ${NODES.length} nodes`, DELIVERY_MS, () =>
    isDelivered(play.mesh, module, commit),
  );
  stage.result(await resultLine(play.mesh, module));
  await checkAnswers(play, NODES, module, path, CHANGES.first.after);
}

async function failingCommit(play: Play): Promise<void> {
  const { stage, mesh } = play;
  stage.scene('A commit whose test fails');
  const { module } = CHANGES.broken;
  const declared = await declaredOn(mesh, module);
  const commit = await push(play, CHANGES.broken);
  await stage.check(module, `is failed at ${commit.slice(0, 7)}`, DELIVERY_MS, async () => {
    const { row } = await mesh.module(module);
    return { isSo: row.head === commit && row.verdict === 'failed' && row.situation === 'failed', says: shown(row.line) };
  });
  stage.result(await resultLine(mesh, module));
  await stage.check(module, 'is declared as before', ANSWER_MS, async () => {
    const now = await declaredOn(mesh, module);
    return { isSo: now === declared, says: `declared are ${now}, before ${declared}` };
  });
  await checkAnswers(play, NODES, module, CHANGES.broken.path, CHANGES.broken.before);
}

async function mendingCommit(play: Play): Promise<void> {
  const { stage, mesh } = play;
  stage.scene('The commit that mends it');
  const { module, path, after } = CHANGES.mended;
  const commit = await push(play, CHANGES.mended);
  await stage.check(module, `is in step at ${commit.slice(0, 7)} on ${NODES.length} nodes`, DELIVERY_MS, () => isDelivered(mesh, module, commit));
  stage.result(await resultLine(mesh, module));
  await checkAnswers(play, NODES, module, path, after);
}

async function nodeOff(play: Play): Promise<void> {
  const { stage, mesh, local } = play;
  stage.scene('A node that is off, and wakes');
  const off = 'gamma';
  const { module, path, before, after } = CHANGES.whileOff;
  await local.host(off).stop();
  stage.did(`the host of ${off} is stopped`);
  const commit = await push(play, CHANGES.whileOff);
  const others = NODES.filter((node) => node !== off);
  await checkAnswers(play, others, module, path, after, DELIVERY_MS);
  await stage.check(module, `is outstanding on ${off}, and says since when`, DELIVERY_MS, async () => {
    const { row, placements } = await mesh.module(module);
    const there = placements.find(({ node }) => node === off);
    const isSo =
      row.head === commit &&
      row.counts.outstanding === 1 &&
      there?.isApplied === false &&
      there.outstandingSince !== null &&
      row.line.includes(`${off} away since`);
    return { isSo, says: shown(row.line) };
  });
  stage.result(await resultLine(mesh, module));
  await checkAnswers(play, [off], module, path, before);
  await local.host(off).start();
  stage.did(`the host of ${off} runs again`);
  await stage.check(off, 'catches up', DELIVERY_MS, () => isDelivered(mesh, module, commit));
  stage.result(await resultLine(mesh, module));
  await checkAnswers(play, [off], module, path, after);
}

async function builderKilled(play: Play): Promise<void> {
  const { stage, mesh, local } = play;
  stage.scene('The builder is killed in the middle of a build');
  const { module, path, after } = CHANGES.whileLost;
  const commit = await push(play, CHANGES.whileLost);
  await stage.check(module, `is being built at ${commit.slice(0, 7)}`, DELIVERY_MS, async () => {
    const { builds, row } = await mesh.module(module);
    return { isSo: builds.some((build) => build.commit === commit && build.state === 'taken'), says: shown(row.line) };
  });
  await local.builder.stop('SIGKILL');
  stage.did('kill -9 of the builder');
  const watched = watchVerdict(mesh, module, commit, 'a lost builder is never a verdict');
  await stage.check(module, 'is outstanding, and says why and since when', DELIVERY_MS, async () => {
    const { row } = await mesh.module(module);
    return { isSo: row.verdict === 'outstanding' && row.line.includes('outstanding since'), says: shown(row.line) };
  });
  stage.result(await resultLine(mesh, module));
  await local.builder.start();
  stage.did('a builder runs again');
  await stage.check(module, 'is fit, and in step on all nodes', DELIVERY_MS, () => watched(isDelivered(mesh, module, commit)));
  stage.result(await resultLine(mesh, module));
  await checkAnswers(play, NODES, module, path, after);
}

/** What one commit to core leads to: each module that builds on it is built once, in order, and the new word is seen in three languages. */
async function sharedCode(play: Play): Promise<void> {
  const { stage, mesh } = play;
  stage.scene('One commit to what they all build on');
  const { message, edits, after } = CORE_CHANGES.motto;
  const before = await fitBuilds(mesh);
  const commit = await pushEdits(play, 'core', message, edits);
  await stage.check('core', `is fit at ${commit.slice(0, 7)}`, DELIVERY_MS, () => isDelivered(mesh, 'core', commit));
  for (const module of ON_CORE) {
    await stage.check(module, 'is built once more, on the new core', DELIVERY_MS, () => isBuiltOnceMore(mesh, module, before));
    stage.result(await resultLine(mesh, module));
  }
  await stage.check('meshboard', 'was built after board-types, and that after core', ANSWER_MS, async () => {
    const times = await Promise.all(['core', 'board-types', 'meshboard'].map(async (module) => (await newestFit(mesh, module))?.answeredAt ?? ''));
    return { isSo: times.every((time, at) => at === 0 || (times[at - 1] ?? '') < time), says: times.join(' · ') };
  });
  for (const { module, path } of SERVICES) await checkAnswers(play, NODES, module, path, after);
}

/** Nothing of core's artifacts is in the README: whoever builds on them is not asked. */
async function changeThatStops(play: Play): Promise<void> {
  const { stage, mesh } = play;
  stage.scene('A commit to core that changes none of its artifacts');
  const before = await fitBuilds(mesh);
  const { message, edits } = CORE_CHANGES.readme;
  const commit = await pushEdits(play, 'core', message, edits);
  await stage.check('core', `is fit at ${commit.slice(0, 7)}, with the same artifacts`, DELIVERY_MS, async () => {
    const delivered = await isDelivered(mesh, 'core', commit);
    const same = (await digestsOf(mesh, 'core')) === before.get('core')?.digests;
    return { isSo: delivered.isSo && same, says: same ? delivered.says : 'its artifacts differ' };
  });
  for (const module of ON_CORE)
    await stage.check(module, 'is in step as it was, and was not built', ANSWER_MS, () => isUntouched(mesh, module, before));
}

/** The source of a Go module holds its comments, and the binary of whoever compiles it does not. */
async function changeThatComesOutTheSame(play: Play): Promise<void> {
  const { stage, mesh } = play;
  stage.scene('A comment in core, compiled into nothing');
  const before = await fitBuilds(mesh);
  const sent = await sentTo(mesh);
  const { message, edits } = CORE_CHANGES.comment;
  const commit = await pushEdits(play, 'core', message, edits);
  await stage.check('core', `is fit at ${commit.slice(0, 7)}`, DELIVERY_MS, () => isDelivered(mesh, 'core', commit));
  for (const module of ['board-types', 'meshboard']) {
    await stage.check(module, 'is built once more, and comes out the same', DELIVERY_MS, async () => {
      const built = await isBuiltOnceMore(mesh, module, before);
      const same = (await digestsOf(mesh, module)) === before.get(module)?.digests;
      return { isSo: built.isSo && same, says: built.isSo ? 'its artifacts differ' : built.says };
    });
    stage.result(await resultLine(mesh, module));
  }
  for (const module of ['kiosk', 'greeter']) await stage.check(module, 'was not built', ANSWER_MS, () => isUntouched(mesh, module, before));
  await stage.check(NODES.join(', '), 'were sent nothing', ANSWER_MS, async () => {
    const now = await sentTo(mesh);
    return { isSo: now === sent, says: `sent are ${now}, before ${sent}` };
  });
}

/** A look that also holds that the build of this commit was never failed. */
function watchVerdict(mesh: Mesh, module: string, commit: string, expected: string): (look: Promise<Seen>) => Promise<Seen> {
  return async (look) => {
    const { builds } = await mesh.module(module);
    const failed = builds.find((build) => build.commit === commit && build.verdict === 'failed');
    if (failed !== undefined) throw new DemoFailure(`expected: ${expected}\nseen: ${failed.build} failed: ${failed.reason ?? ''}`);
    return look;
  };
}

/** Commits and pushes, and tells Tally as a hook of the repository would; without that it would be found by reading. */
async function push(play: Play, change: Change): Promise<string> {
  return pushEdits(play, change.module, change.message, [change]);
}

async function pushEdits(play: Play, module: string, message: string, edits: readonly Edit[]): Promise<string> {
  const commit = await play.repository(module).change(message, edits);
  play.stage.did(`git commit -m "${message}" · git push (${commit.slice(0, 7)})`);
  await play.tally('nudge', module);
  return commit;
}

async function checkAnswers(
  play: Play,
  nodes: readonly string[],
  module: string,
  path: string,
  expected: string,
  withinMs = ANSWER_MS,
): Promise<void> {
  for (const node of nodes) {
    await play.stage.check(node, `answers ${JSON.stringify(expected)}`, withinMs, async () => {
      const answer = await answerOf(play.port(node, module), path);
      return { isSo: answer.includes(expected), says: answer.slice(0, 200) };
    });
  }
}

async function declaredOn(mesh: Mesh, module: string): Promise<string> {
  const { placements } = await mesh.module(module);
  return placements.map(({ node, declared }) => `${node}=${declared?.commit.slice(0, 7) ?? 'nothing'}`).join(' ');
}

/** The part of an answer that a scene is about, else its beginning. */
function excerpt(answer: string, part: string): string {
  return answer.includes(part) ? part : answer.slice(0, 80);
}
