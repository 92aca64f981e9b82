import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { type ChannelModel, connect } from 'amqplib';
import { EnvironmentError, UsageError } from '../../src/domain/errors';
import {
  type Delivery,
  declareNode,
  declareTopology,
  EXCHANGES,
  ensureBuilderAccount,
  ensureNodeAccount,
  findManagement,
  type Link,
  type Management,
  nodeExchange,
  nodeQueue,
  openLink,
  QUEUES,
  ROUTES,
  removeAccount,
  removeNode,
  UnroutableError,
} from '../../src/link';
import { eventually } from '../support/eventually';
import { type FreshVhost, freshVhost } from '../support/servers';

let vhost: FreshVhost;
let management: Management;
let link: Link;
const opened: Link[] = [];

async function open(url: string, name = 'test'): Promise<Link> {
  const one = await openLink({ url, name });
  opened.push(one);
  await one.ready(10_000);
  return one;
}

function as(account: { user: string; password: string }): string {
  const url = new URL(vhost.amqpUrl);
  url.username = encodeURIComponent(account.user);
  url.password = encodeURIComponent(account.password);
  return url.href;
}

async function ask(method: string, path: string): Promise<unknown> {
  const response = await fetch(`${management.url}${path}`, {
    method,
    headers: { authorization: management.authorization },
    signal: AbortSignal.timeout(10_000),
  });
  return method === 'GET' ? await response.json() : null;
}

/** Closes the broker's side of the connections of that name, as an operator would. */
async function cutConnections(name: string): Promise<void> {
  await eventually(
    async () => {
      const all = (await ask('GET', `/api/vhosts/${encodeURIComponent(vhost.vhost)}/connections`)) as Array<{
        name: string;
        user_provided_name?: string;
      }>;
      const ours = all.filter((one) => one.user_provided_name?.startsWith(name));
      for (const one of ours) await ask('DELETE', `/api/connections/${encodeURIComponent(one.name)}`);
      return ours.length > 0;
    },
    { timeoutMs: 20_000, everyMs: 200 },
  );
}

beforeAll(async () => {
  vhost = await freshVhost();
  management = await findManagement(vhost.amqpUrl, vhost.managementUrl);
  link = await open(vhost.amqpUrl, 'control');
  await declareTopology(link, { platforms: ['linux-amd64'] });
});

afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()));
});

describe('publishing', () => {
  it('is refused as unroutable when no queue takes it', async () => {
    await expect(link.publish(EXCHANGES.requests, 'build.plan9', {})).rejects.toThrow(UnroutableError);
    await expect(link.publish('', 'to.nobody', {})).rejects.toThrow(/came back/);
  });

  it('fails when the exchange is not there, and goes on working', async () => {
    await expect(link.publish('nowhere', 'x', {})).rejects.toThrow(EnvironmentError);
    await link.publish(EXCHANGES.requests, QUEUES.inspect, { n: 1 });
  });

  it('is refused when the queue is full', async () => {
    await link.withChannel((channel) => channel.assertQueue('small', { durable: true, maxLength: 1, overflow: 'reject-publish' }));
    await link.publish('', 'small', { n: 1 });
    await expect(link.publish('', 'small', { n: 2 })).rejects.toThrow(/full/);
  });

  it('fails in time when the broker cannot be reached', async () => {
    const url = new URL(vhost.amqpUrl);
    url.port = '1';
    const nobody = await openLink({ url: url.href, name: 'nobody' });
    await expect(nobody.publish('', 'x', {}, { timeoutMs: 300 })).rejects.toThrow(EnvironmentError);
    await expect(nobody.ready(100)).rejects.toThrow(/cannot be reached/);
    expect(await nobody.request('', 'x', {}, { timeoutMs: 100 })).toBeNull();
    expect(nobody.isUp()).toBe(false);
    await nobody.close();
  });

  it('does not wait for ever for a confirm', async () => {
    const { port, hostname } = new URL(vhost.amqpUrl);
    const backs: Socket[] = [];
    const proxy = createServer((front) => {
      const back = createConnection(Number(port), hostname);
      backs.push(back);
      front.on('error', () => back.destroy());
      back.on('error', () => front.destroy());
      front.pipe(back).pipe(front);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const through = new URL(vhost.amqpUrl);
    through.port = String((proxy.address() as AddressInfo).port);
    const slow = await open(through.href, 'slow');
    await slow.publish(EXCHANGES.requests, QUEUES.inspect, { n: 1 });
    for (const back of backs) back.pause();
    await expect(slow.publish(EXCHANGES.requests, QUEUES.inspect, { n: 2 }, { timeoutMs: 300 })).rejects.toThrow(/not confirmed within 300 ms/);
    for (const back of backs) back.resume();
    await slow.publish(EXCHANGES.requests, QUEUES.inspect, { n: 3 });
    await slow.close();
    proxy.close();
  });

  it('names what an address should be, and never the password', async () => {
    await expect(openLink({ url: 'nonsense', name: 'x' })).rejects.toThrow(UsageError);
    const url = new URL(vhost.amqpUrl);
    url.password = 'wr0ng-secret';
    const refused = await openLink({ url: url.href, name: 'refused' });
    const error: unknown = await refused.ready(2_000).catch((e: unknown) => e);
    expect(String(error)).not.toContain('wr0ng-secret');
    expect(error).toBeInstanceOf(EnvironmentError);
    await refused.close();
  });
});

describe('a queue to a node', () => {
  it('holds the newest message only', async () => {
    await declareNode(link, 'gamma');
    for (const n of [1, 2, 3]) await link.publish('', nodeQueue('gamma'), { n });
    const got: unknown[] = [];
    const consumer = await link.consume(nodeQueue('gamma'), { prefetch: 10 }, async (delivery) => {
      got.push(JSON.parse(delivery.body.toString()));
      delivery.ack();
    });
    await eventually(() => got.length > 0);
    await link.publish('', nodeQueue('gamma'), { n: 4 });
    await eventually(() => got.length === 2);
    expect(got).toEqual([{ n: 3 }, { n: 4 }]);
    await consumer.stop();
    await removeNode(link, 'gamma');
    await expect(link.publish('', nodeQueue('gamma'), {})).rejects.toThrow(UnroutableError);
  });
});

describe('a consumer', () => {
  it('comes back after its connection was cut; the message comes again and the late ack does nothing', async () => {
    const cut = await open(vhost.amqpUrl, 'to-be-cut');
    await link.withChannel((channel) => channel.assertQueue('work', { durable: true, maxLength: 100 }));
    const deliveries: Delivery[] = [];
    const consumer = await cut.consume('work', { prefetch: 1 }, async (delivery) => {
      deliveries.push(delivery);
    });
    await link.publish('', 'work', { n: 1 });
    const [first] = await eventually(() => deliveries.length === 1 && deliveries);
    await cutConnections('to-be-cut');
    const [, second] = await eventually(() => deliveries.length === 2 && deliveries, { timeoutMs: 20_000 });
    expect(second?.redelivered).toBe(true);
    expect(first?.ack()).toBe(false);
    expect(second?.ack()).toBe(true);
    expect(second?.ack()).toBe(false);
    expect(second?.requeue()).toBe(false);
    await link.publish('', 'work', { n: 2 });
    const [, , third] = await eventually(() => deliveries.length === 3 && deliveries);
    expect(third?.ack()).toBe(true);
    // Publishing survived it too.
    await cut.publish('', 'work', { n: 3 });
    await eventually(() => deliveries.length === 4);
    deliveries[3]?.ack();
    await consumer.stop();
  }, 60_000);

  it('waits for a queue that is not there yet', async () => {
    const got: string[] = [];
    const consumer = await link.consume('later', { prefetch: 1 }, async (delivery) => {
      got.push(delivery.body.toString());
      delivery.ack();
    });
    await expect(link.publish('', 'later', {})).rejects.toThrow(UnroutableError);
    await link.withChannel((channel) => channel.assertQueue('later', { durable: true, maxLength: 10 }));
    await eventually(() => consumer.isActive());
    await link.publish('', 'later', { n: 1 });
    await eventually(() => got.length === 1);
    await consumer.stop();
  });

  it('comes back when its queue was deleted and made again', async () => {
    const got: string[] = [];
    const make = (): Promise<unknown> => link.withChannel((channel) => channel.assertQueue('fragile', { durable: true, maxLength: 10 }));
    await make();
    const consumer = await link.consume('fragile', { prefetch: 1 }, async (delivery) => {
      got.push(delivery.body.toString());
      delivery.ack();
    });
    await eventually(() => consumer.isActive());
    await link.withChannel((channel) => channel.deleteQueue('fragile'));
    await eventually(() => !consumer.isActive());
    await make();
    await eventually(() => consumer.isActive());
    await link.publish('', 'fragile', { n: 1 });
    await eventually(() => got.length === 1);
    await consumer.stop();
  });

  it('moves what cannot be taken in to the dead letters, with the reason', async () => {
    const dead: Delivery[] = [];
    const listening = await link.consume(QUEUES.dead, { prefetch: 10 }, async (delivery) => {
      dead.push(delivery);
      delivery.ack();
    });
    const consumer = await link.consume(QUEUES.answers, { prefetch: 1 }, async (delivery) => {
      await delivery.reject('it is no answer');
    });
    await link.publish(EXCHANGES.builders, ROUTES.answer, { nonsense: true });
    const [letter] = await eventually(() => dead.length === 1 && dead);
    expect(letter?.headers).toMatchObject({ 'x-tally-queue': 'answers', 'x-tally-reason': 'it is no answer' });
    expect(JSON.parse(letter?.body.toString() ?? '')).toEqual({ body: '{"nonsense":true}' });
    await consumer.stop();
    await listening.stop();
  });

  it('is asked again when a handler fails for its surroundings, and twice failing for a defect is a dead letter', async () => {
    const errors: unknown[] = [];
    const own = await openLink({ url: vhost.amqpUrl, name: 'failing', onHandlerError: (error) => errors.push(error) });
    opened.push(own);
    const dead: Delivery[] = [];
    const listening = await link.consume(QUEUES.dead, { prefetch: 10 }, async (delivery) => {
      dead.push(delivery);
      delivery.ack();
    });
    let times = 0;
    const consumer = await own.consume(QUEUES.answers, { prefetch: 1 }, async () => {
      times += 1;
      throw times < 3 ? new EnvironmentError('the store is away') : new TypeError('a defect');
    });
    await link.publish(EXCHANGES.builders, ROUTES.answer, { n: 1 });
    const [letter] = await eventually(() => dead.length === 1 && dead, { timeoutMs: 15_000 });
    expect(String(letter?.headers['x-tally-reason'])).toContain('a defect');
    expect(times).toBe(3);
    expect(errors).toHaveLength(3);
    await consumer.stop();
    await listening.stop();
  });

  it('lets its handlers end before it stops', async () => {
    await link.withChannel((channel) => channel.assertQueue('slow', { durable: true, maxLength: 10 }));
    let finish = (): void => undefined;
    let acked: boolean | null = null;
    const began = new Promise<void>((began) => {
      void link
        .consume('slow', { prefetch: 1 }, async (delivery) => {
          began();
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
          acked = delivery.ack();
        })
        .then((consumer) => {
          stopping = () => consumer.stop();
        });
    });
    let stopping: () => Promise<void> = async () => undefined;
    await link.publish('', 'slow', {});
    await began;
    const stopped = stopping();
    finish();
    await stopped;
    expect(acked).toBe(true);
  });
});

describe('request and reply', () => {
  it('answers the one who asked, and gives null when nobody does', async () => {
    const builder = await open(as(await ensureBuilderAccount(management, 'one')), 'builder');
    const replier = await link.consume(QUEUES.claims, { prefetch: 10 }, async (delivery) => {
      const body = JSON.parse(delivery.body.toString()) as { n: number };
      delivery.ack();
      await link.publish(
        '',
        delivery.replyTo ?? '',
        { twice: body.n * 2, who: delivery.userId },
        { correlationId: delivery.correlationId ?? '', persistent: false },
      );
    });
    const replies = await Promise.all([1, 2, 3].map((n) => builder.request(EXCHANGES.builders, ROUTES.claim, { n }, { timeoutMs: 5_000 })));
    expect(replies).toEqual([1, 2, 3].map((n) => ({ twice: n * 2, who: builder.user })));
    await replier.stop();
    expect(await builder.request(EXCHANGES.builders, ROUTES.claim, { n: 1 }, { timeoutMs: 200 })).toBeNull();
  });
});

describe('accounts', () => {
  let alpha: Link;
  let url: string;

  async function refusal(attempt: (model: ChannelModel) => Promise<unknown>): Promise<string> {
    const model = await connect(url, { timeout: 5_000 });
    model.on('error', () => undefined);
    try {
      await attempt(model);
      return 'allowed';
    } catch (error) {
      return String(error);
    } finally {
      await model.close().catch(() => undefined);
    }
  }

  beforeAll(async () => {
    await declareNode(link, 'alpha');
    await declareNode(link, 'beta');
    const account = await ensureNodeAccount(management, 'alpha');
    expect(account.password.length).toBeGreaterThan(30);
    url = as(account);
    alpha = await open(url, 'host-alpha');
  });

  it('let a node report on its own exchange under its own name, and read its own queue', async () => {
    const got: Delivery[] = [];
    const reports = await link.consume(QUEUES.reports, { prefetch: 1 }, async (delivery) => {
      got.push(delivery);
      delivery.ack();
    });
    await alpha.publish(nodeExchange('alpha'), ROUTES.report, { n: 1 });
    const [report] = await eventually(() => got.length === 1 && got);
    expect(report).toMatchObject({ exchange: 'from.alpha', routingKey: 'report', userId: alpha.user });
    await reports.stop();

    let told = 0;
    const own = await alpha.consume(nodeQueue('alpha'), { prefetch: 1 }, async (delivery) => {
      told += 1;
      delivery.ack();
    });
    await link.publish('', nodeQueue('alpha'), { n: 1 });
    await eventually(() => told === 1);
    await own.stop();
  });

  it('refuse a node everything else', async () => {
    for (const [exchange, key] of [
      [nodeExchange('beta'), ROUTES.report],
      [EXCHANGES.builders, ROUTES.answer],
      [EXCHANGES.dead, ''],
      ['', nodeQueue('beta')],
    ] as const) {
      await expect(alpha.publish(exchange, key, {})).rejects.toThrow(/ACCESS.REFUSED/);
    }
    expect(await refusal(async (model) => await (await quiet(model)).consume(nodeQueue('beta'), () => undefined))).toMatch(/ACCESS.REFUSED/);
    expect(await refusal(async (model) => await (await quiet(model)).consume(QUEUES.reports, () => undefined))).toMatch(/ACCESS.REFUSED/);
    expect(await refusal(async (model) => await (await quiet(model)).assertQueue('mine'))).toMatch(/ACCESS.REFUSED/);
    expect(await refusal(async (model) => await (await quiet(model)).assertQueue(''))).toMatch(/ACCESS.REFUSED/);
    expect(await refusal(async (model) => await (await quiet(model)).bindQueue(nodeQueue('alpha'), nodeExchange('beta'), 'x'))).toMatch(
      /ACCESS.REFUSED/,
    );
    expect(await refusal(async (model) => await (await quiet(model)).purgeQueue(nodeQueue('beta')))).toMatch(/ACCESS.REFUSED/);
    expect(await refusal(async (model) => await (await quiet(model)).deleteQueue(nodeQueue('alpha')))).toMatch(/ACCESS.REFUSED/);
  });

  it('refuse a forged name', async () => {
    const forged = await refusal(async (model) => {
      const channel = await model.createConfirmChannel();
      let failure = 'closed';
      channel.on('error', (error) => {
        failure = String(error);
      });
      channel.publish(nodeExchange('alpha'), ROUTES.report, Buffer.from('{}'), { userId: 'node-beta' });
      await channel.waitForConfirms().catch(() => {
        throw new Error(failure);
      });
    });
    expect(forged).toMatch(/PRECONDITION.FAILED/);
  });

  it('end when they are removed', async () => {
    const account = await ensureNodeAccount(management, 'doomed');
    const doomed = await open(as(account), 'doomed');
    await removeAccount(management, account.user);
    await removeAccount(management, account.user);
    await eventually(() => !doomed.isUp());
  });

  it('need a management API that answers', async () => {
    await expect(findManagement(vhost.amqpUrl, 'http://127.0.0.1:1')).rejects.toThrow(/AMQP_MANAGEMENT_URL/);
    const wrong = new URL(vhost.managementUrl);
    wrong.password = 'wrong';
    await expect(findManagement(vhost.amqpUrl, wrong.href)).rejects.toThrow(UsageError);
  });
});

async function quiet(model: ChannelModel): ReturnType<ChannelModel['createChannel']> {
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  return channel;
}
