/** `tally doctor`: each thing that the mesh leans on, one line each, and what to do where it is not well. */
import { builderStatuses, meshHealth, nodeStatuses } from '../inventory';
import { neededPlatforms, schemaState, storeClock } from '../inventory/doctor';
import type { DoctorAnswer } from '../schema/api';
import type { ApiDeps } from './deps';
import { type Finding, ill, type Probe, well } from './finding';
import { isReadLate } from './rows';

const PROBE_TIMEOUT_MS = 5_000;
const CLOCK_SKEW_MAX_MS = 2_000;

export async function examine(deps: ApiDeps): Promise<DoctorAnswer> {
  const checks = await Promise.all([...storeProbes(deps), ...deps.probes].map(run));
  return { isWell: checks.every((check) => check.isWell), checks };
}

async function run(probe: Probe): Promise<DoctorAnswer['checks'][number]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((resolve) => {
    timer = setTimeout(() => resolve(ill(`no answer within ${PROBE_TIMEOUT_MS / 1_000} s`, `look whether it runs: ${probe.what}`)), PROBE_TIMEOUT_MS);
  });
  try {
    const finding = await Promise.race([probe.run(), late]);
    return { what: probe.what, ...finding };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { what: probe.what, ...ill(reason, `look whether it runs: ${probe.what}`) };
  } finally {
    clearTimeout(timer);
  }
}

function storeProbes({ db, config }: ApiDeps): Probe[] {
  const { times } = config;
  return [
    {
      what: 'store',
      async run() {
        const { applied, known } = await schemaState(db);
        if (applied === known) return well(`PostgreSQL answers; its tables are at ${applied ?? 'no migration'}`);
        return ill(
          `its tables are at ${applied ?? 'no migration'}, this control plane knows ${known ?? 'none'}`,
          'start the control plane again: it brings them up to date',
        );
      },
    },
    {
      what: 'clock',
      async run() {
        const skewMs = Math.round(await storeClock(db));
        const says = `the store's clock and this one differ by ${Math.abs(skewMs)} ms`;
        return Math.abs(skewMs) <= CLOCK_SKEW_MAX_MS ? well(says) : ill(says, 'let NTP set both clocks');
      },
    },
    {
      what: 'comparisons',
      async run() {
        const { oldestOwedSince, oldestOwedModule, uncompared } = await meshHealth(db);
        if (oldestOwedSince === null) return well('every module is compared with its newest facts');
        const owedMs = Date.now() - Date.parse(oldestOwedSince);
        const says = `${uncompared} modules wait to be compared, ${oldestOwedModule ?? 'one'} since ${Math.round(owedMs / 1_000)} s`;
        return owedMs <= 2 * times.sweep ? well(says) : ill(says, 'see whether Temporal and the control plane’s workers run');
      },
    },
    {
      what: 'sources',
      async run() {
        const { oldestDueSince, oldestDueModule } = await meshHealth(db);
        const now = new Date();
        if (oldestDueSince === null || !isReadLate(oldestDueSince, now, times)) return well('no source is late');
        const says = `sources are not read, that of ${oldestDueModule ?? 'one'} for ${Math.round((now.getTime() - Date.parse(oldestDueSince)) / 1_000)} s`;
        return ill(says, 'see whether Temporal and the control plane’s workers run, and that the schedule watch-sources is not paused');
      },
    },
    {
      what: 'dead letters',
      async run() {
        const { deadLetters, newestDeadLetter } = await meshHealth(db);
        if (deadLetters === 0) return well('no message was unreadable');
        return ill(
          `${deadLetters} messages were unreadable, the newest from ${newestDeadLetter?.queue ?? '?'}: ${newestDeadLetter?.reason ?? '?'}`,
          'bring hosts and builders to the version of the control plane',
        );
      },
    },
    {
      what: 'builders',
      async run() {
        const [builders, needed] = await Promise.all([builderStatuses(db, new Date(), times), neededPlatforms(db)]);
        const up = builders.filter((builder) => builder.presence === 'up');
        const offered = new Set(up.flatMap((builder) => builder.platforms));
        const missing = needed.filter(({ platform }) => !offered.has(platform));
        const [first] = missing;
        if (first !== undefined)
          return ill(
            `no builder for ${first.platform}, which ${first.modules} modules need`,
            `start one: TALLY_PLATFORMS=${first.platform} tally builder`,
          );
        if (up.length === 0) return ill('no builder is up', 'start one: tally builder');
        return well(`${up.map((builder) => builder.builder).join(', ')} for ${[...offered].sort().join(', ')}`);
      },
    },
    {
      what: 'nodes',
      async run() {
        const nodes = await nodeStatuses(db, new Date(), times);
        const away = nodes.filter((node) => node.presence !== 'up').map((node) => node.node);
        const refused = nodes.filter((node) => node.keyRefused !== null).map((node) => node.node);
        if (refused.length > 0)
          return ill(
            `${refused.join(', ')} came with another key than first seen, and was refused`,
            `tally node trust ${refused[0] ?? ''} where its host was installed anew, else tally node renew ${refused[0] ?? ''}`,
          );
        if (away.length > 0)
          return ill(
            `${nodes.length - away.length} of ${nodes.length} are up; not ${away.slice(0, 5).join(', ')}${away.length > 5 ? ` and ${away.length - 5} more` : ''}`,
            `start the host of ${away[0] ?? ''}, or leave it off: it is told when it wakes`,
          );
        return well(`${nodes.length === 0 ? 'there are none yet' : `all ${nodes.length} are up`}`);
      },
    },
  ];
}
