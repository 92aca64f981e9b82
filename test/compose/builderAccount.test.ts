import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { connect } from 'amqplib';
import { freshVhost } from '../support/servers';

test('the compose file gives its builder an account that can connect and declares nothing', async () => {
  const { vhost, amqpUrl, managementUrl } = await freshVhost();
  const environment = { PATH: process.env.PATH, AMQP_URL: amqpUrl, AMQP_MANAGEMENT_URL: managementUrl, TALLY_BUILDER_PASSWORD: 'only4this' };
  const script = join(__dirname, '..', '..', 'docker', 'builder-account.js');
  const said = execFileSync(process.execPath, [script, 'compose'], { env: environment, encoding: 'utf8', timeout: 20_000 });
  const user = `builder-compose@${vhost}`;
  expect(said).toBe(`broker account ${user} is there\n`);

  const url = new URL(amqpUrl);
  const connection = await connect({
    hostname: url.hostname,
    port: Number(url.port),
    username: user,
    password: 'only4this',
    vhost,
  });
  const channel = await connection.createChannel();
  channel.on('error', () => undefined);
  await expect(channel.assertQueue('mine')).rejects.toThrow(/ACCESS_REFUSED/);
  await connection.close();
});
