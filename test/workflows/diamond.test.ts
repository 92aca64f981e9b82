import { ActivityNotFoundError } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { createAsked } from '../../activities/asked';
import { createDecisions } from '../../activities/decisions';
import { defaultTimes } from '../../src/domain/times';
import { addModule, changedModules, type Db, moduleStatuses, recordAnswer, recordReading } from '../../src/inventory';
import type { Answer, Input } from '../../src/schema/messages';
import type { ModuleInput } from '../../workflows/shared';
import { namesOf } from '../inventory/graphMesh';
import { commitOf, digest, fitAnswer, openStore, valid } from '../inventory/store';
import { env } from '../support/moduleRuns';

const NAMES = ['core', 'left', 'right', 'bottom'] as const;
const imports: Record<string, readonly string[]> = { core: [], left: ['m/core'], right: ['m/core'], bottom: ['m/left', 'm/right'] };
const QUEUE = 'diamond';
const GIVE_UP_MS = 60_000;

/** The diamond's workflows over a real store; what a builder would make of a commit is said by its first letter. */
class Diamond {
  private readonly asked = new Set<string>();
  /** What an artifact is made from besides its inputs, by commit letter. */
  constructor(
    private readonly db: Db,
    private readonly contentOf: (letter: string) => string,
  ) {}

  worker(): Promise<Worker> {
    const deps = { db: this.db, times: defaultTimes, now: () => new Date() };
    const publishRequest = async (_key: string, body: object): Promise<void> => {
      this.asked.add((body as { request: string }).request);
    };
    return Worker.create({
      connection: env.nativeConnection,
      namespace: env.namespace ?? 'default',
      taskQueue: QUEUE,
      workflowsPath: require.resolve('../../workflows/index'),
      activities: { ...createDecisions(deps), ...createAsked({ ...deps, publishRequest }) },
    });
  }

  async add(): Promise<void> {
    for (const name of NAMES) await addModule(this.db, { name, repository: `file:///${name}.git`, ref: 'main' });
    await Promise.all(NAMES.map((name) => this.move(name, 'a')));
  }

  move(name: string, letter: string): Promise<void> {
    return recordReading(this.db, name, { kind: 'head', commit: commitOf(letter) }, new Date(), defaultTimes);
  }

  /** Answers what is asked, one at a time and `which` of them first, until all are in step. */
  async untilInStep(which: (ids: readonly string[]) => string | undefined): Promise<void> {
    const deadline = Date.now() + GIVE_UP_MS;
    for (;;) {
      const statuses = await moduleStatuses(this.db);
      const owed = await changedModules(this.db, 100, new Date(), 0);
      if (owed.length === 0 && statuses.every((status) => status.situation === 'in step')) return;
      if (Date.now() > deadline) throw new Error(`not in step: ${JSON.stringify(statuses.map(({ module, line }) => `${module} ${line}`))}`);
      await Promise.all(owed.map(({ name }) => this.nudge(name)));
      const id = which([...this.asked]);
      if (id !== undefined) await this.answer(id);
      else await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async buildsOf(): Promise<Record<string, number>> {
    const rows = await this.db.query<{ module: string; count: number }>(
      'select module, count(*)::int as count from build where verdict is not null group by module',
    );
    return Object.fromEntries(rows.map(({ module, count }) => [module, count]));
  }

  private async nudge(module: string): Promise<void> {
    const input: ModuleInput = { module, links: { repository: '', board: '' }, resumed: null };
    await env.client.workflow.signalWithStart('moduleWorkflow', {
      ...{ workflowId: `module/${module}`, taskQueue: QUEUE, args: [input], signal: 'nudge', signalArgs: [] },
    });
  }

  private async answer(id: string): Promise<void> {
    this.asked.delete(id);
    const [row] = await this.db.query<{ module: string; kind: string; commit: string; inputs: Input[] | null; state: string }>(
      `select module, kind, commit, state, body -> 'inputs' as inputs from request where id = $1`,
      [id],
    );
    if (row === undefined || row.state === 'answered' || row.state === 'cancelled') return;
    await recordAnswer(this.db, row.kind === 'inspect' ? this.inspected(id, row.module) : this.built(id, row), new Date(), defaultTimes);
    await env.client.activity.complete({ workflowId: `module/${row.module}`, activityId: id }, 'answered').catch((error: unknown) => {
      if (!(error instanceof ActivityNotFoundError)) throw error;
    });
  }

  private inspected(id: string, module: string): Answer {
    return { ...valid(id, { module }), ...namesOf({ exports: [`m/${module}`], imports: imports[module] ?? [] }) } as Answer;
  }

  private built(id: string, { module, commit, inputs }: { module: string; commit: string; inputs: Input[] | null }): Answer {
    const used = inputs ?? [];
    const made = digest({ module, content: this.contentOf(commit[0] ?? ''), inputs: used.map((input) => input.digest) });
    const artifact = { name: 'out', kind: 'go' as const, repository: `tally/${module}`, digest: made, blob: made, size: 1 };
    return fitAnswer(id, { artifacts: [artifact], inputs: used });
  }
}

test('a diamond through the real workflow and store: the bottom is built once, and what makes the same artifact stops where it is', async () => {
  const { db } = await openStore();
  // The commits b and c of core make the same artifact.
  const diamond = new Diamond(db, (letter) => (letter === 'c' ? 'b' : letter));
  const worker = await diamond.worker();
  try {
    await worker.runUntil(async () => {
      await diamond.add();
      await diamond.untilInStep((ids) => ids[0]);
      expect(await diamond.buildsOf()).toEqual({ core: 1, left: 1, right: 1, bottom: 1 });

      await diamond.move('core', 'b');
      // The newest first, so that one side is done while the other has not begun.
      await diamond.untilInStep((ids) => ids.at(-1));
      expect(await diamond.buildsOf()).toEqual({ core: 2, left: 2, right: 2, bottom: 2 });

      await diamond.move('core', 'c');
      await diamond.untilInStep((ids) => ids[0]);
      expect(await diamond.buildsOf()).toEqual({ core: 3, left: 2, right: 2, bottom: 2 });

      await Promise.all([diamond.move('core', 'd'), diamond.move('bottom', 'd'), diamond.move('right', 'd')]);
      await diamond.untilInStep((ids) => ids.at(-1));
      expect(await diamond.buildsOf()).toEqual({ core: 4, left: 3, right: 3, bottom: 3 });
      for (const name of NAMES) await env.client.workflow.getHandle(`module/${name}`).terminate('the test is over');
    });
  } finally {
    await db.close();
  }
}, 180_000);
