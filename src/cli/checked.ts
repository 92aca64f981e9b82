/** Waits for a build that is made twice, and says which files came out otherwise. */
import { setTimeout as pause } from 'node:timers/promises';
import { EnvironmentError } from '../domain/errors';
import type { BuildRow, DoneAnswer, ModuleAnswer } from '../schema/api';
import type { Api } from './client';
import { short } from './shown';
import { plain } from './text';
import { answer, IN_STEP, type Json, NOT_IN_STEP, path } from './verb';

const EVERY_MS = 1_000;
/** Longer than two builds may take by the builder's own limit, with some time to be taken. */
const MOST_MS = 6 * 3_600_000;

export async function checkModule(server: Api, module: string, why: string | undefined, options: Json): Promise<void> {
  const before = new Set((await buildsOf(server, module)).filter(hasEnded).map((build) => build.build));
  const asked = await server.post<DoneAnswer>(path('modules', module, 'build'), { check: true, why });
  if (!options.json) process.stderr.write(`${plain(asked.says)}\n`);
  const build = await ended(server, module, before, options);
  const differing = build.differing ?? [];
  const isSame = build.verdict === 'fit' && build.differing !== null && differing.length === 0;
  const lines = (): string[] => {
    const made = `${module} ${short(build.commit)}`;
    if (build.verdict !== 'fit') return [plain(`${made} is ${build.verdict}${build.reason === null ? '' : `: ${build.reason}`}`)];
    if (build.differing === null) return [`${made} was built once: its builder does not build twice, start a newer one`];
    if (isSame) return [`${made} came out the same twice`];
    return [`${made} came out otherwise the second time:`, ...differing.map(({ artifact, file }) => plain(`  ${artifact}  ${file}`))];
  };
  answer(
    { module, build: build.build, commit: build.commit, verdict: build.verdict, differing: build.differing },
    options,
    lines,
    isSame ? IN_STEP : NOT_IN_STEP,
  );
}

async function ended(server: Api, module: string, before: ReadonlySet<string>, options: Json): Promise<BuildRow> {
  const deadline = Date.now() + MOST_MS;
  let shown = '';
  while (Date.now() < deadline) {
    const mine = (await buildsOf(server, module)).find((build) => build.isCheck && !before.has(build.build));
    if (mine !== undefined && hasEnded(mine)) return mine;
    const now = mine === undefined ? 'not asked for yet' : [mine.state, mine.step ?? '', mine.reason ?? ''].filter((word) => word !== '').join(' · ');
    if (now !== shown && !options.json) process.stderr.write(`${plain(now)}\n`);
    shown = now;
    await pause(EVERY_MS);
  }
  throw new EnvironmentError(`the check of ${module} has not ended within 6 h (${shown}): tally why ${module}`);
}

function hasEnded({ state }: BuildRow): boolean {
  return state === 'answered' || state === 'cancelled';
}

async function buildsOf(server: Api, module: string): Promise<readonly BuildRow[]> {
  return (await server.get<ModuleAnswer>(path('modules', module))).builds;
}
