/** A few true gauges for Prometheus, counted from the same rows as the status. No names, so no token. */
import type { FastifyInstance } from 'fastify';
import { builderStatuses, meshHealth, moduleStatuses, nodeStatuses } from '../inventory';
import type { ApiDeps } from './deps';
import { sharedReading } from './shared';

/** There is no token, so that whoever asks often is answered with what was just read. */
const AGE_MS = 1_000;

export function metricRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const metrics = sharedReading(AGE_MS, async () => await readMetrics(deps));
  app.get(
    '/metrics',
    async (_request, reply) => await reply.header('content-type', 'text/plain; version=0.0.4; charset=utf-8').send(await metrics()),
  );
}

async function readMetrics({ db, config }: ApiDeps): Promise<string> {
  const now = new Date();
  const [modules, nodes, builders, health] = await Promise.all([
    moduleStatuses(db),
    nodeStatuses(db, now, config.times),
    builderStatuses(db, now, config.times),
    meshHealth(db),
  ]);
  const secondsSince = (since: string | null): number => (since === null ? 0 : Math.max(0, (now.getTime() - Date.parse(since)) / 1_000));
  return [
    gauge('tally_modules', 'Modules by situation.', 'situation', tally(modules.map((row) => row.situation ?? 'not compared'))),
    gauge('tally_modules_needing_a_person', 'Modules that need a person.', null, { '': modules.filter((row) => row.needsPerson).length }),
    gauge('tally_placements_outstanding', 'Placements whose node has not applied what is declared.', null, {
      '': sum(modules.map((row) => row.counts.outstanding)),
    }),
    gauge('tally_placements_stuck', 'Placements that fail the same way again and again.', null, {
      '': sum(modules.map((row) => row.counts.stuck)),
    }),
    gauge('tally_nodes', 'Nodes by presence.', 'presence', tally(nodes.map((row) => row.presence))),
    gauge('tally_nodes_by_sending', 'Nodes by what was last sent against what would be.', 'sending', tally(nodes.map((row) => row.sending))),
    gauge('tally_builders', 'Builders by presence.', 'presence', tally(builders.map((row) => row.presence))),
    gauge('tally_builds_running', 'Requests that builders are at.', null, { '': sum(builders.map((row) => row.busy.length)) }),
    gauge('tally_dead_letters', 'Messages kept that could not be read.', null, { '': health.deadLetters }),
    gauge('tally_modules_uncompared', 'Modules whose facts moved since they were compared.', null, { '': health.uncompared }),
    gauge('tally_oldest_comparison_owed_seconds', 'How long the oldest such comparison is owed.', null, { '': secondsSince(health.oldestOwedSince) }),
    gauge('tally_oldest_source_due_seconds', 'How long the source that is due longest has not been read.', null, {
      '': secondsSince(health.oldestDueSince),
    }),
    gauge('process_resident_memory_bytes', 'Resident memory of this control process.', null, { '': process.memoryUsage.rss() }),
  ].join('');
}

function gauge(name: string, help: string, label: string | null, values: Readonly<Record<string, number>>): string {
  const samples = Object.entries(values).map(([value, count]) => `${name}${label === null ? '' : `{${label}="${value}"}`} ${count}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${samples.join('')}`;
}

/** How often each word stands there. */
function tally(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
