/** `tally up`: the servers, a control plane and a builder on this machine; with `--demo` three machines and their story. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { createColors } from 'picocolors';
import { DEMO_TIMES, playDemo, readMarker, stage, writeMarker } from '../../demo';
import { UsageError } from '../../domain/errors';
import { stopServices } from '../../host';
import { addToken, type Db, listModules, migrate, openInventory, setSetting, whoIs } from '../../inventory';
import {
  Interrupted,
  type Interruption,
  keptToken,
  type LocalMesh,
  localMesh,
  placesOf,
  processesOf,
  stopLeftProcesses,
  untilAnswering,
  watchInterruption,
} from '../../processes';
import { type Servers, startServers } from '../../servers';
import { Ports } from '../../servers/ports';
import { hasColours, type Progress, progress } from '../progress';

export interface UpOptions {
  readonly demo: boolean;
  /** Data of its own, the demo to its end, everything stopped. */
  readonly once: boolean;
  readonly fresh: boolean;
  readonly data: string | undefined;
}

/** @returns the exit status: 0 when all went as it should and everything that was started has ended. */
export async function up(options: UpOptions): Promise<number> {
  const out = progress(process.stdout);
  const interruption = watchInterruption();
  const isOwnData = options.once && options.data === undefined;
  const dataDir = isOwnData ? mkdtempSync(join(tmpdir(), 'tally-once-')) : resolve(options.data ?? '.tally');
  mkdirSync(dataDir, { recursive: true });
  // Servers that run as other users pass through; what is secret in here has modes of its own.
  chmodSync(dataDir, 0o755);
  const running = new Running(dataDir, out, isOwnData);
  interruption.onInsisting(() => running.hurry());
  let status = 0;
  try {
    await interruption.until(run(options, dataDir, running, out, interruption));
  } catch (error) {
    if (error instanceof Interrupted) {
      status = options.once ? 1 : 0;
    } else {
      status = 1;
      out.line(error instanceof Error ? error.message : String(error));
    }
  }
  if (!(await running.stop())) status = 1;
  if (isOwnData && status === 0) rmSync(dataDir, { recursive: true, force: true });
  else if (isOwnData) out.line(`its data and logs are kept in ${dataDir}`);
  return status;
}

async function run(options: UpOptions, dataDir: string, running: Running, out: Progress, interruption: Interruption): Promise<void> {
  const withDemo = options.demo || options.once;
  const began = performance.now();
  running.servers = startServers({ dataDir, reporter: out, fresh: options.fresh });
  const { addresses } = await running.servers;
  await out.step('leftovers', async (say) => say(await clean(dataDir, options.fresh)));
  const places = placesOf(dataDir);
  mkdirSync(places.processes, { recursive: true });
  const db = await out.step('mesh', async (say) => {
    const applied = await migrate(addresses.databaseUrl);
    say(applied.length === 0 ? 'tables are there, skipped' : `${applied.length} migrations applied`);
    return openInventory(addresses.databaseUrl, { max: 2 });
  });
  running.db = db;
  const marker = await readMarker(db);
  if (options.once && marker !== null && marker.state !== 'prepared') {
    throw new UsageError(`the demo was played in ${dataDir} before: leave --data out, or say --fresh`);
  }
  const mesh = await localMesh({
    dataDir,
    addresses,
    apiPort: await new Ports(places.processes).free('api'),
    environment: withDemo ? DEMO_TIMES : {},
    say: (line) => out.line(line),
  });
  running.mesh = mesh;
  await keptToken(places, mesh.apiUrl, { add: (name) => addToken(db, name), whoIs: (token) => whoIs(db, token) });
  await out.step('control', async (say) => {
    await mesh.control.start();
    await untilAnswering(mesh);
    say(mesh.apiUrl);
  });
  await out.step('builder', async (say) => {
    await mesh.builder.start();
    say(`process ${mesh.builder.pid() ?? 'unknown'}`);
  });
  // What an operator has begun keeps its own default.
  if (withDemo && (await listModules(db)).length === 0) await setSetting(db, 'declareDefault', 'auto');
  if (marker !== null) {
    await out.step('hosts', async (say) => {
      for (const node of marker.nodes) await mesh.host(node).start();
      say(marker.nodes.join(', '));
    });
  }
  if (withDemo && (marker === null || marker.state === 'prepared')) {
    const show = stage(out, createColors(hasColours(process.stdout)), () => {
      if (interruption.isAsked()) throw new Interrupted('asked to stop');
    });
    await playDemo(mesh, show, (reached) => writeMarker(db, reached));
  }
  if (withDemo && marker?.state === 'playing') out.line('the demo was interrupted and is not played twice here; --fresh begins anew');
  out.line(`\nup in ${Math.round((performance.now() - began) / 1_000)} s`);
  if (options.once) return;
  out.line(nextSteps(mesh, addresses.temporalUiUrl, dataDir, marker !== null || withDemo));
  await interruption.asked;
}

/** What an earlier run left running is stopped, and with `fresh` all that it wrote is gone. */
async function clean(dataDir: string, isFresh: boolean): Promise<string> {
  const places = placesOf(dataDir);
  const left = await stopLeftProcesses(dataDir);
  const stopped = left.length === 0 ? 'none, skipped' : `stopped ${left.join(', ')} of a run that was killed`;
  if (!isFresh) return stopped;
  await stopDemoServices(places.nodes);
  for (const place of Object.values(places)) rmSync(place, { recursive: true, force: true });
  return 'everything of earlier runs is gone';
}

/** The services outlive their hosts on purpose; here they end with the rest, and their hosts bring them up at the next start. */
async function stopDemoServices(nodes: string): Promise<void> {
  if (!existsSync(nodes)) return;
  await Promise.all(readdirSync(nodes).map((node) => stopServices(join(nodes, node, 'state'))));
}

/** All that was started, in the order in which it ends. */
class Running {
  /** A promise, since an interruption may come while they start: then they are stopped as soon as they have. */
  servers: Promise<Servers> | null = null;
  mesh: LocalMesh | null = null;
  db: Db | null = null;
  private isHurried = false;

  constructor(
    private readonly dataDir: string,
    private readonly out: Progress,
    private readonly isOwnData: boolean,
  ) {}

  /** @returns false when something could not be stopped, which it says. */
  async stop(): Promise<boolean> {
    const { mesh, servers, db, out } = this;
    try {
      await out.step('stopping', async (say) => {
        say('hosts and their services, builder, control plane');
        if (mesh !== null) {
          await mesh.stop(this.isHurried ? 'SIGKILL' : undefined);
          await stopDemoServices(mesh.places.nodes);
        }
        await db?.close();
        say('servers');
        const started = await servers?.catch(() => null);
        await started?.stop();
        // Of a directory that nobody else knows it can be proved; beside another one somebody may read a log.
        const left = this.isOwnData ? processesOf(this.dataDir) : [];
        if (left.length > 0) throw new Error(left.map(({ pid, command }) => `still running: ${pid} ${command}`).join('\n'));
        say('nothing is left running');
      });
      return true;
    } catch (error) {
      out.line(error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  /** Asked twice: nothing is waited for any more that can be killed. */
  hurry(): void {
    if (this.isHurried) {
      this.out.line(`not everything has ended: the next "tally up" here stops the rest`);
      process.exit(130);
    }
    this.isHurried = true;
    this.out.line('asked again: killing what has not ended; once more leaves at once');
    void this.mesh?.stop('SIGKILL').catch(() => undefined);
  }
}

function nextSteps(mesh: LocalMesh, temporalUiUrl: string | null, dataDir: string, hasDemo: boolean): string {
  const { bold } = createColors(hasColours(process.stdout));
  const isDefault = relative(resolve('.tally'), dataDir) === '';
  const tally = isDefault ? 'npx tally' : `TALLY_HOME=${mesh.places.home} npx tally`;
  return [
    '',
    `  board         ${bold(mesh.apiUrl)}/`,
    `  Temporal UI   ${temporalUiUrl === null ? 'where your Temporal has it' : bold(temporalUiUrl)}`,
    '',
    `  ${tally} status`,
    ...(hasDemo
      ? ['why meshboard', 'log kiosk', 'node show gamma', 'hold site --why "not today"']
      : ['module add NAME REPOSITORY', 'node add NAME', 'assign MODULE NODE']
    ).map((words) => `  ${tally} ${words}`),
    `  ${tally} open`,
    '',
    'Ctrl-C stops everything; the next start goes on with the same data.',
  ].join('\n');
}

export function checkUpOptions(options: UpOptions): void {
  if (options.once && options.fresh && options.data === undefined) {
    throw new UsageError('--once has data of its own, so there is nothing to begin anew: leave --fresh out');
  }
}
