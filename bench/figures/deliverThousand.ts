import { setTimeout as pause } from 'node:timers/promises';
import { defaultTimes } from '../../src/domain/times';
import type { Db } from '../../src/inventory/db';
import { recordReadings } from '../../src/inventory/sources';
import { type ControlProcess, startControlProcess } from '../control';
import type { Benchmark } from '../figure';
import { seedModules, withServers } from '../mesh';
import { startStubBuilder } from '../stubBuilder';

const MODULES = 1_000;
const NODES = 10;
const HEAD = 'b'.repeat(40);
const GIVE_UP_MS = 300_000;

/** A thousand modules get a new head at once: compare, inspect, build, declare, with a builder that takes no time. */
export const deliverThousand: Benchmark = {
  figures: ['deliver-1000', 'control-rss'],
  run: ({ print, say }) =>
    withServers(['temporal', 'postgres', 'rabbitmq', 'registry'], say, async (servers) => {
      const { db } = servers;
      await seedModules(db, MODULES);
      await placeModules(db);
      const control = await startControlProcess(servers);
      const builder = await startStubBuilder(servers.addresses.amqpUrl, 20);
      try {
        await untilWorkflowsRest(db, say);
        const start = Date.now();
        const names = await db.query<{ name: string }>('select name from module');
        await recordReadings(
          db,
          names.map(({ name }) => ({ module: name, reading: { kind: 'head', commit: HEAD } })),
          new Date(),
          // Their repositories are nowhere: nobody asks them.
          { ...defaultTimes, readRefs: 86_400_000 },
        );
        const peak = await untilDeclared(db, control, say);
        print({ name: 'deliver-1000', value: (Date.now() - start) / 1_000, unit: 's', reference: { name: 'aim', value: 64 } });
        print({ name: 'control-rss', value: peak, unit: 'MiB', reference: { name: 'aim', value: 300 } });
      } finally {
        await builder.stop();
        await control.stop();
      }
    }),
};

async function placeModules(db: Db): Promise<void> {
  await db.query(`insert into node (name, broker_user) select 'node-' || n, 'node-' || n from generate_series(0, $1::int - 1) n`, [NODES]);
  await db.query(
    `insert into placement (module, node, build_id, declared_at) select name, 'node-' || (right(name, 5)::int % $1::int), effective_build, now() from module`,
    [NODES],
  );
  await db.query('update node set version = 1, derived_version = 1', []);
}

/** Their first comparison is not what is measured. */
async function untilWorkflowsRest(db: Db, say: (text: string) => void): Promise<void> {
  const deadline = Date.now() + GIVE_UP_MS;
  for (;;) {
    const [row] = await db.query<{ owed: number }>('select count(*) as owed from module where facts_version <> compared_version', []);
    if (Number(row?.owed) === 0) return;
    if (Date.now() > deadline) throw new Error(`${row?.owed} modules are still not compared`);
    say(`before the start: ${row?.owed} modules to compare`);
    await pause(1_000);
  }
}

async function untilDeclared(db: Db, control: ControlProcess, say: (text: string) => void): Promise<number> {
  const deadline = Date.now() + GIVE_UP_MS;
  let peak = 0;
  for (let round = 0; ; round += 1) {
    const [row] = await db.query<{ declared: number; inspected: number; fit: number }>(
      `select (select count(*) from placement p join build b on b.id = p.build_id where b.commit = $1) as declared,
         (select count(*) from inspection where commit = $1) as inspected, (select count(*) from build where commit = $1 and verdict = 'fit') as fit`,
      [HEAD],
    );
    peak = Math.max(peak, await control.rssMiB());
    const declared = Number(row?.declared);
    if (declared === MODULES) return peak;
    if (Date.now() > deadline) throw new Error(`${declared} of ${MODULES} are declared after ${GIVE_UP_MS / 1_000} s`);
    if (round % 20 === 0) say(`${row?.inspected} inspected, ${row?.fit} fit, ${declared} declared, control ${Math.round(peak)} MiB`);
    await pause(100);
  }
}
