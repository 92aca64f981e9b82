import { ActivityNotFoundError, Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createAsked } from '../../activities/asked';
import { createDecisions } from '../../activities/decisions';
import { defaultTimes } from '../../src/domain/times';
import { addModule, changedModules, type Db, moduleStatuses, recordAnswer, recordReading } from '../../src/inventory';
import type { Answer, Input } from '../../src/schema/messages';
import type { ModuleInput } from '../../workflows/shared';
import { namesOf } from '../inventory/graphMesh';
import { commitOf, digest, fitAnswer, openStore, valid } from '../inventory/store';
import { eventually } from '../support/eventually';
import { type TemporalNamespace, temporalNamespace } from '../support/servers';

const atOnce = { answerMs: 0, answeredMs: 0, waitMs: 0 };

const NAMES = ['core', 'left', 'right', 'bottom'] as const;
const imports: Record<string, readonly string[]> = { core: [], left: ['m/core'], right: ['m/core'], bottom: ['m/left', 'm/right'] };
const QUEUE = 'diamond';
const CALL_TIMEOUT_MS = 20_000;
const GIVE_UP_MS = 60_000;

/**
 * The diamond's workflows over a real store and a real Temporal; what a builder would make of a commit is said by its first
 * letter. Not the server that skips time: it does not know an activity that ends while its workflow cancels it.
 */
class Diamond {
  /** Ids of requests, with their modules, in the order in which they were published. */
  private readonly asked = new Map<string, string>();

  constructor(
    private readonly db: Db,
    private readonly client: Client,
    /** What an artifact is made from besides its inputs, by commit letter. */
    private readonly contentOf: (letter: string) => string,
  ) {}

  worker(connection: NativeConnection): Promise<Worker> {
    const deps = { db: this.db, times: defaultTimes, now: () => new Date() };
    const publishRequest = async (_key: string, body: object): Promise<void> => {
      const { request, module } = body as { request: string; module: string };
      this.asked.set(request, module);
    };
    return Worker.create({
      connection,
      namespace: this.client.options.namespace,
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

  /** Answers what is asked, one at a time, that of these modules first, until all are in step. */
  async untilInStep(...first: readonly string[]): Promise<void> {
    let broken: Error | null = null;
    // A step that fails is not one to be tried again.
    const step = (): Promise<boolean> =>
      this.step(first).catch((error: Error) => {
        broken = error;
        return true;
      });
    await eventually(step, { timeoutMs: GIVE_UP_MS }).catch(async (cause: Error) => {
      throw new Error(`not in step: ${await this.says()}`, { cause });
    });
    if (broken !== null) throw broken;
  }

  /** @returns whether nothing is left to do. */
  private async step(first: readonly string[]): Promise<boolean> {
    // In this order: what was compared after the statuses were read would be owed no more, and its status one of before.
    const owed = await changedModules(this.db, 100, new Date(), atOnce);
    const statuses = await moduleStatuses(this.db);
    if (owed.length === 0 && statuses.every((status) => status.situation === 'in step')) return true;
    await Promise.all(owed.map(({ name }) => this.nudge(name)));
    const ids = [...this.asked];
    const [id] = ids.find(([, module]) => first.includes(module)) ?? ids[0] ?? [];
    if (id !== undefined) await this.answer(id);
    return false;
  }

  async buildsOf(): Promise<Record<string, number>> {
    const rows = await this.db.query<{ module: string; count: number }>(
      'select module, count(*)::int as count from build where verdict is not null group by module',
    );
    return Object.fromEntries(rows.map(({ module, count }) => [module, count]));
  }

  private async says(): Promise<string> {
    const statuses = await moduleStatuses(this.db);
    const open = await this.db.query(`select id, module, kind, state, trouble_reason from request where state not in ('answered', 'cancelled')`);
    return JSON.stringify({ lines: statuses.map(({ module, line }) => `${module} ${line}`), open, asked: [...this.asked] });
  }

  private async nudge(module: string): Promise<void> {
    const input: ModuleInput = { module, links: { repository: '', board: '' }, resumed: null };
    await this.client.workflow.signalWithStart('moduleWorkflow', {
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
    await this.client.activity.complete({ workflowId: `module/${row.module}`, activityId: id }, 'answered').catch((error: unknown) => {
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

let temporal: TemporalNamespace;
let connection: Connection;
let native: NativeConnection;
let db: Db;

beforeAll(async () => {
  temporal = await temporalNamespace();
  connection = await Connection.connect({ address: temporal.address, connectTimeout: CALL_TIMEOUT_MS });
  native = await NativeConnection.connect({ address: temporal.address });
  ({ db } = await openStore());
}, 60_000);

afterAll(async () => {
  await db?.close();
  await native?.close();
  await connection?.close();
});

test('a diamond through the real workflow and store: the bottom is built once, and what makes the same artifact stops where it is', async () => {
  const client = new Client({ connection, namespace: temporal.namespace });
  // The commits b and c of core make the same artifact.
  const diamond = new Diamond(db, client, (letter) => (letter === 'c' ? 'b' : letter));
  const worker = await diamond.worker(native);
  await worker.runUntil(async () => {
    await diamond.add();
    // As long as core is not inspected nobody knows that it is an input, so how often the others are built is not said.
    await diamond.untilInStep();
    const first = await diamond.buildsOf();
    const since = async (): Promise<Record<string, number>> =>
      Object.fromEntries(Object.entries(await diamond.buildsOf()).map(([name, count]) => [name, count - (first[name] ?? 0)]));

    await diamond.move('core', 'b');
    // Whenever the bottom is asked for it is answered before its sides: asked too early, it would be built again.
    await diamond.untilInStep('bottom');
    expect(await since()).toEqual({ core: 1, left: 1, right: 1, bottom: 1 });

    await diamond.move('core', 'c');
    await diamond.untilInStep();
    expect(await since()).toEqual({ core: 2, left: 1, right: 1, bottom: 1 });

    await Promise.all([diamond.move('core', 'd'), diamond.move('bottom', 'd'), diamond.move('right', 'd')]);
    await diamond.untilInStep('bottom', 'left');
    expect(await since()).toEqual({ core: 3, left: 2, right: 2, bottom: 2 });
    for (const name of NAMES) await client.workflow.getHandle(`module/${name}`).terminate('the test is over');
  });
}, 180_000);
