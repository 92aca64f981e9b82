/** What the API asks of the other servers: the doctor's probes, and a node's own way to the broker. */
import { brokerAccess, serverProbes } from '../../src/api';
import { declareTopology, findManagement, openLink } from '../../src/link';
import { connectTemporal } from '../../src/temporal/client';
import { eventually } from '../support/eventually';
import { type FreshVhost, freshVhost, registryUrl, taskQueue, temporalNamespace } from '../support/servers';

type Link = Awaited<ReturnType<typeof openLink>>;

let broker: FreshVhost;
let link: Link;

beforeAll(async () => {
  broker = await freshVhost();
  link = await openLink({ url: broker.amqpUrl, name: 'test control' });
  await declareTopology(link, { platforms: ['linux-amd64'] });
});

afterAll(async () => {
  await link.close();
});

const management = (): ReturnType<typeof findManagement> => findManagement(broker.amqpUrl, broker.managementUrl);

describe('the doctor', () => {
  test('finds the servers well, and knows the consumer time-out', async () => {
    const temporal = connectTemporal({ ...(await temporalNamespace()), taskQueue: taskQueue(), boardUrl: 'http://tally.test' });
    const probes = serverProbes({ temporal, link, management, registryUrl: registryUrl(), nodes: async () => [] });
    const found = new Map<string, unknown>();
    for (const probe of probes) found.set(probe.what, await probe.run());
    await temporal.close();
    for (const what of ['temporal', 'broker', 'accounts', 'queues', 'registry']) expect(found.get(what)).toMatchObject({ isWell: true });
    expect(found.get('consumer timeout')).toMatchObject({ says: expect.stringMatching(/min|ms/) });
  });

  test('names the nodes whose accounts the broker lost, and what helps', async () => {
    const nodes = async () => [{ name: 'alpha', brokerUser: 'node-alpha@lost' }];
    const probes = serverProbes({ temporal: { client: {} as never }, link, management, registryUrl: registryUrl(), nodes });
    expect(await probes.find(({ what }) => what === 'accounts')?.run()).toMatchObject({
      isWell: false,
      says: 'the broker has no account for alpha: they cannot connect',
      remedy: expect.stringContaining('tally node renew alpha'),
    });
  });

  test('sees requests that no builder reads', async () => {
    await link.publish('tally.requests', 'build.linux-amd64', { v: 1 });
    const [probe] = serverProbes({ temporal: { client: {} as never }, link, management, registryUrl: registryUrl(), nodes: async () => [] }).filter(
      ({ what }) => what === 'queues',
    );
    // The broker counts its queues every few seconds.
    const finding = await eventually(
      async () => {
        const seen = await probe?.run();
        expect(seen?.isWell).toBe(false);
        return seen;
      },
      { timeoutMs: 20_000, everyMs: 250 },
    );
    expect(finding).toMatchObject({ says: expect.stringContaining('build.linux-amd64'), remedy: 'start a builder: tally builder' });
  });
});

describe('a node’s own way to the broker', () => {
  test('is made with what its host needs, and taken away again', async () => {
    const access = brokerAccess({ link, management, amqpUrl: broker.amqpUrl, registryUrl: registryUrl(), meshPublicKey: 'the key' });
    const { user, credentials } = await access.make('alpha');
    expect(credentials).toMatchObject({ registryUrl: registryUrl(), meshPublicKey: 'the key' });
    const { amqpUrl } = credentials as { amqpUrl: string };
    const own = await openLink({ url: amqpUrl, name: 'host alpha' });
    await own.ready(5_000);
    await own.publish('from.alpha', 'report', { v: 1 });
    await own.close();
    await access.remove('alpha', user);
    const shutOut = await openLink({ url: amqpUrl, name: 'host alpha' });
    await expect(shutOut.ready(1_000)).rejects.toThrow();
    await shutOut.close();
  });
});
