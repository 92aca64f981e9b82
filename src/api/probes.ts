/** What `doctor` asks of the servers beside the store. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { accountsOf, type Link, type Management } from '../link';
import type { TemporalLink } from '../temporal/client';
import { ill, type Probe, well } from './finding';

const CALL_TIMEOUT_MS = 4_000;
/** Checked by the broker once a minute; below this a build that only waits for its answer's confirm would be cut off. */
const CONSUMER_TIMEOUT_LEAST_MS = 120_000;
const DEFAULT_CONSUMER_TIMEOUT_MS = 1_800_000;
const DEPTH_MAX = 1_000;

export interface ProbeDeps {
  readonly temporal: Pick<TemporalLink, 'client'>;
  readonly link: Pick<Link, 'isUp'>;
  /** null where the broker has no management API that is known. */
  readonly management: () => Promise<Management>;
  readonly registryUrl: string;
  readonly nodes: () => Promise<ReadonlyArray<{ readonly name: string; readonly brokerUser: string }>>;
}

export function serverProbes(deps: ProbeDeps): Probe[] {
  const { temporal, link, registryUrl } = deps;
  return [
    {
      what: 'temporal',
      async run() {
        const { serverVersion } = await temporal.client.workflowService.getSystemInfo({});
        return well(`Temporal ${serverVersion ?? ''} answers, namespace ${temporal.client.options.namespace}`);
      },
    },
    {
      what: 'broker',
      async run() {
        return link.isUp()
          ? well('both connections stand')
          : ill('this control process has no connection to the broker', 'start the broker; the connection comes back by itself');
      },
    },
    { what: 'consumer timeout', run: async () => consumerTimeout(await deps.management()) },
    { what: 'accounts', run: async () => nodeAccounts(await deps.management(), await deps.nodes()) },
    { what: 'queues', run: async () => queueDepths(await deps.management()) },
    {
      what: 'registry',
      async run() {
        const url = new URL('v2/', registryUrl.endsWith('/') ? registryUrl : `${registryUrl}/`);
        const authorization =
          url.username === ''
            ? {}
            : { authorization: `Basic ${Buffer.from(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`).toString('base64')}` };
        url.username = '';
        url.password = '';
        const response = await fetch(url, { headers: authorization, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
        await response.arrayBuffer();
        return response.ok
          ? well(`${url.origin} answers`)
          : ill(`${url.origin} answered ${response.status}`, 'look whether REGISTRY_URL names an OCI registry that this user may use');
      },
    },
  ];
}

const queue = z.looseObject({
  name: z.string(),
  messages: z.number().optional(),
  consumers: z.number().optional(),
  arguments: z.record(z.string(), z.unknown()).optional(),
  effective_policy_definition: z.record(z.string(), z.unknown()).nullish(),
});

async function nodeAccounts(
  management: Management,
  nodes: ReadonlyArray<{ readonly name: string; readonly brokerUser: string }>,
): Promise<ReturnType<typeof well>> {
  const known = await accountsOf(management);
  const lost = nodes.filter(({ brokerUser }) => !known.has(brokerUser)).map(({ name }) => name);
  const [first] = lost;
  if (first === undefined) return well(`the broker knows the accounts of all ${nodes.length} nodes`);
  return ill(
    `the broker has no account for ${lost.slice(0, 5).join(', ')}${lost.length > 5 ? ` and ${lost.length - 5} more` : ''}: they cannot connect`,
    `tally node renew ${first}, then start its host with the new credentials`,
  );
}

async function readQueues(management: Management): Promise<Array<z.infer<typeof queue>>> {
  return z.array(queue).parse(await call(management, `/api/queues/${encodeURIComponent(management.vhost)}`));
}

async function queueDepths(management: Management): Promise<ReturnType<typeof well>> {
  const queues = await readQueues(management);
  const isRequests = (name: string): boolean => name === 'inspect' || name.startsWith('build.');
  const alone = queues.find((one) => isRequests(one.name) && (one.messages ?? 0) > 0 && one.consumers === 0);
  if (alone !== undefined)
    return ill(`${alone.messages ?? 0} requests wait in ${alone.name} and no builder reads it`, 'start a builder: tally builder');
  const deep = queues
    .filter((one) => !isRequests(one.name) && (one.messages ?? 0) > DEPTH_MAX)
    .sort((a, b) => (b.messages ?? 0) - (a.messages ?? 0))[0];
  if (deep !== undefined)
    return ill(`${deep.messages ?? 0} messages wait in ${deep.name}`, 'see whether the control plane runs and the store is not overloaded');
  const waiting = queues.filter((one) => !one.name.startsWith('to.')).reduce((total, one) => total + (one.messages ?? 0), 0);
  const own = queues.filter((one) => one.name.startsWith('to.') && (one.messages ?? 0) > 0).length;
  return well(`${waiting} messages wait, and declarations for ${own} nodes`);
}

/** A queue's own argument or policy counts before the broker's setting, which only its file tells. */
async function consumerTimeout(management: Management): Promise<ReturnType<typeof well>> {
  const own = (await readQueues(management))
    .filter((one) => one.name === 'inspect' || one.name.startsWith('build.'))
    .map((one) => one.arguments?.['x-consumer-timeout'] ?? one.effective_policy_definition?.['consumer-timeout'])
    .filter((ms) => typeof ms === 'number');
  const set = own.length > 0 ? Math.min(...own) : await fromFile(management);
  const timeoutMs = set ?? DEFAULT_CONSUMER_TIMEOUT_MS;
  const says = `${set === null ? 'nothing sets it, so RabbitMQ’s default of ' : ''}${Math.round(timeoutMs / 60_000)} min; a longer build is delivered again and joins the one that runs`;
  return timeoutMs >= CONSUMER_TIMEOUT_LEAST_MS
    ? well(says)
    : ill(`${timeoutMs} ms: builders would be cut off again and again`, 'set consumer_timeout = 1800000 in rabbitmq.conf');
}

async function fromFile(management: Management): Promise<number | null> {
  const nodes = z.array(z.looseObject({ config_files: z.array(z.string()).optional() })).safeParse(await call(management, '/api/nodes'));
  const files = nodes.success ? nodes.data.flatMap((node) => node.config_files ?? []) : [];
  for (const file of files.slice(0, 8)) {
    // The broker may be on another machine: then its file cannot be read here, and the default is said.
    const text = await readFile(file, 'utf8').catch(() => '');
    const [, ms] = /^\s*consumer_timeout\s*=\s*(\d+)\s*$/m.exec(text) ?? [];
    if (ms !== undefined) return Number(ms);
  }
  return null;
}

async function call(management: Management, path: string): Promise<unknown> {
  const response = await fetch(`${management.url}${path}`, {
    headers: { authorization: management.authorization },
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  if (!response.ok) {
    await response.arrayBuffer();
    throw new Error(`the broker's management API answered ${path} with ${response.status}`);
  }
  return await response.json();
}
