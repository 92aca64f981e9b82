import { execFileSync } from 'node:child_process';
import { Connection } from '@temporalio/client';
import { connect } from 'amqplib';
import { Client } from 'pg';
import { freshDatabase, freshVhost, registryUrl, temporalNamespace, timeSkippingServer } from '../support/servers';

describe('what every integration test is given', () => {
  test('a database that is empty and its own', async () => {
    const [one, other] = await Promise.all([freshDatabase(), freshDatabase()]);
    expect(one).not.toBe(other);
    const client = new Client({ connectionString: one });
    await client.connect();
    const { rows } = await client.query("select tablename from pg_tables where schemaname = 'public'");
    await client.end();
    expect(rows).toEqual([]);
  });

  test('a vhost that may be declared in', async () => {
    const { amqpUrl } = await freshVhost();
    const connection = await connect(amqpUrl);
    const channel = await connection.createChannel();
    await expect(channel.assertQueue('q', { durable: true })).resolves.toMatchObject({ queue: 'q', messageCount: 0 });
    await connection.close();
  });

  test('a namespace that knows the search attributes', async () => {
    const { address, namespace } = await temporalNamespace();
    const connection = await Connection.connect({ address });
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    await connection.close();
    expect(Object.keys(customAttributes)).toEqual(expect.arrayContaining(['TallyVerdict', 'TallySituation', 'TallyStuck', 'TallyOutstanding']));
  });

  test('a registry', async () => {
    const response = await fetch(`${registryUrl()}/v2/`);
    expect(response.status).toBe(200);
  });

  test('a time-skipping Temporal', () => {
    expect(execFileSync('test', ['-x', timeSkippingServer()]).toString()).toBe('');
  });
});
