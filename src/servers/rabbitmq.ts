import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { connect } from 'amqplib';
import { EnvironmentError, UsageError } from '../domain/errors';
import { runContainer } from './container';
import type { Program } from './find';
import { serversDir } from './places';
import type { Ports } from './ports';
import type { ProcessSpec } from './processes';
import { isExecutable, lastLine, onPath, run } from './run';
import { keptSecret } from './secrets';
import { runServer } from './server';
import type { Started } from './types';

export interface RabbitmqAddress {
  amqpUrl: string;
  amqpManagementUrl: string | null;
}

const IMAGE = 'docker.io/library/rabbitmq:3.13.7-management';
const USER = 'tally';
/** RabbitMQ's own default. */
const CONSUMER_TIMEOUT_MS = 30 * 60_000;

/** RabbitMQ with node name, ports, epmd and data of its own; or the broker at AMQP_URL. */
export async function startRabbitmq(
  program: Program,
  dataDir: string,
  ports: Ports,
  say: (detail: string) => void,
  consumerTimeoutMs = CONSUMER_TIMEOUT_MS,
): Promise<Started<RabbitmqAddress>> {
  if (program.from === 'address') {
    const address = await foundBroker(program.url);
    say(`at ${new URL(program.url).host} (AMQP_URL), skipped`);
    return { address, stop: async () => undefined };
  }
  const home = join(serversDir(dataDir), 'rabbitmq');
  const password = keptSecret(home, 'password');
  const address = (amqp = 0, management = 0) => ({
    amqpUrl: `amqp://${USER}:${password}@127.0.0.1:${amqp}`,
    amqpManagementUrl: `http://${USER}:${password}@127.0.0.1:${management}`,
  });
  const running =
    program.from === 'engine'
      ? await inContainer(program.engine, dataDir, home, ports, password, consumerTimeoutMs, address)
      : await asProcess(program.path, home, ports, password, consumerTimeoutMs, address);
  say(`${running.how} at ${new URL(running.address.amqpUrl).host}`);
  return running;
}

type AddressOf = (amqp: number | undefined, management: number | undefined) => RabbitmqAddress;
type Running = Started<RabbitmqAddress> & { how: string };

async function asProcess(
  script: string,
  home: string,
  ports: Ports,
  password: string,
  consumerTimeoutMs: number,
  address: AddressOf,
): Promise<Running> {
  mkdirSync(home, { recursive: true });
  const epmd = await runServer({
    ports,
    portNames: ['rabbitmq-epmd'],
    readyWithinMs: 10_000,
    spec: ([port]) => epmdSpec(epmdBeside(script), home, port ?? 0),
    address: ([port]) => port ?? 0,
    probe: (port) => epmdAnswers(port),
  });
  try {
    const broker = await runServer({
      ports,
      portNames: ['rabbitmq', 'rabbitmq-management', 'rabbitmq-dist'],
      readyWithinMs: 90_000,
      spec: ([amqp = 0, management = 0, dist = 0]) => {
        const config = configOf(amqp, management, password, consumerTimeoutMs);
        return brokerSpec(script, home, config, dist, epmd.address);
      },
      address: ([amqp, management]) => address(amqp, management),
      probe: brokerAnswers,
    });
    const stop = async () => {
      await broker.stop();
      // A node registers with its epmd and never stops it: it would stay for ever.
      await epmd.stop();
    };
    return { ...broker, stop };
  } catch (error) {
    await epmd.stop();
    throw error;
  }
}

async function inContainer(
  engine: string,
  dataDir: string,
  home: string,
  ports: Ports,
  password: string,
  consumerTimeoutMs: number,
  address: AddressOf,
): Promise<Running> {
  const data = join(home, 'data');
  const config = join(home, 'conf.d');
  mkdirSync(data, { recursive: true });
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, '20-tally.conf'), `consumer_timeout = ${consumerTimeoutMs}\n`);
  return await runContainer({
    dataDir,
    ports,
    portNames: ['rabbitmq', 'rabbitmq-management'],
    readyWithinMs: 120_000,
    container: ([amqp = 0, management = 0]) => ({
      engine,
      name: 'rabbitmq',
      image: IMAGE,
      ports: { [amqp]: 5672, [management]: 15_672 },
      mounts: { [data]: '/var/lib/rabbitmq', [join(config, '20-tally.conf')]: '/etc/rabbitmq/conf.d/20-tally.conf' },
      // The node's name is part of its data's path, and by default made of the container's id.
      env: { RABBITMQ_DEFAULT_USER: USER, RABBITMQ_DEFAULT_PASS: password, RABBITMQ_NODENAME: 'tally@localhost' },
    }),
    address: ([amqp, management]) => address(amqp, management),
    probe: brokerAnswers,
  });
}

function configOf(amqp: number, management: number, password: string, consumerTimeoutMs: number): string {
  return `listeners.tcp.1 = 127.0.0.1:${amqp}
management.tcp.ip = 127.0.0.1
management.tcp.port = ${management}
default_user = ${USER}
default_pass = ${password}
consumer_timeout = ${consumerTimeoutMs}
log.file = false
log.console = true
log.console.level = warning
`;
}

function brokerSpec(script: string, home: string, config: string, distPort: number, epmdPort: number): ProcessSpec {
  const file = join(home, 'rabbitmq.conf');
  writeFileSync(file, config, { mode: 0o600 });
  writeFileSync(join(home, 'enabled_plugins'), '[rabbitmq_management].\n');
  // Read by RabbitMQ's script: without one of our own it reads the machine's.
  writeFileSync(join(home, 'rabbitmq-env.conf'), '');
  mkdirSync(join(home, 'conf.d'), { recursive: true });
  keptSecret(home, '.erlang.cookie');
  chmodSync(join(home, '.erlang.cookie'), 0o400);
  const env: NodeJS.ProcessEnv = {
    ...machine(),
    HOME: home,
    RABBITMQ_NODENAME: `tally-${createHash('sha256').update(home).digest('hex').slice(0, 8)}@localhost`,
    RABBITMQ_DIST_PORT: String(distPort),
    RABBITMQ_MNESIA_BASE: join(home, 'data'),
    RABBITMQ_LOG_BASE: join(home, 'log'),
    RABBITMQ_CONFIG_FILE: join(home, 'rabbitmq'),
    RABBITMQ_CONFIG_FILES: join(home, 'conf.d'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(home, 'advanced'),
    RABBITMQ_CONF_ENV_FILE: join(home, 'rabbitmq-env.conf'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(home, 'enabled_plugins'),
    RABBITMQ_PID_FILE: join(home, 'rabbitmq.own-pid'),
    // Loopback for the distribution too; and no spinning schedulers beside everything else on a small machine.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none',
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    // Makes the script become the broker instead of standing beside it.
    RUNNING_UNDER_SYSTEMD: 'true',
  };
  return { name: 'rabbitmq', home, command: script, args: [], env, stopSignal: 'SIGTERM', config: `${config}${distPort} ${epmdPort}` };
}

function epmdSpec(epmd: string, home: string, port: number): ProcessSpec {
  const args = ['-address', '127.0.0.1', '-port', String(port)];
  return { name: 'epmd', home, command: epmd, args, env: machine(), stopSignal: 'SIGTERM' };
}

/** Not the whole environment: RABBITMQ_ and ERL_ variables of the user's are about another broker. */
function machine(): NodeJS.ProcessEnv {
  const { PATH, TMPDIR } = process.env;
  return { PATH: `${PATH}:/usr/sbin:/sbin`, LANG: 'C.UTF-8', ...(TMPDIR === undefined ? {} : { TMPDIR }) };
}

function epmdBeside(script: string): string {
  const beside = join(dirname(script), 'epmd');
  const found = isExecutable(beside) ? beside : onPath('epmd');
  if (found !== null) return found;
  throw new UsageError(`${script} is here, but Erlang's epmd is not on PATH: add the bin folder of Erlang's erts to PATH`);
}

async function epmdAnswers(port: number): Promise<void> {
  const env = { ...machine(), ERL_EPMD_ADDRESS: '127.0.0.1' };
  const { ok, stderr } = await run(onPath('epmd') ?? 'epmd', ['-port', String(port), '-names'], { timeoutMs: 5_000, env });
  if (!ok) throw new EnvironmentError(lastLine(stderr));
}

async function brokerAnswers({ amqpUrl, amqpManagementUrl }: RabbitmqAddress): Promise<void> {
  await amqpAnswers(amqpUrl);
  if (amqpManagementUrl !== null) await managementAnswers(amqpManagementUrl);
}

async function amqpAnswers(amqpUrl: string): Promise<void> {
  const connection = await connect(amqpUrl, { timeout: 5_000 });
  connection.on('error', () => undefined);
  await connection.close();
}

async function managementAnswers(managementUrl: string): Promise<void> {
  const url = new URL('/api/whoami', managementUrl);
  const { username, password } = url;
  url.username = '';
  url.password = '';
  const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  const response = await fetch(url, { headers: { authorization: `Basic ${login}`, connection: 'close' }, signal: AbortSignal.timeout(5_000) });
  if (!response.ok) throw new EnvironmentError(`GET /api/whoami answered ${response.status}`);
}

async function foundBroker(amqpUrl: string): Promise<RabbitmqAddress> {
  const { host } = new URL(amqpUrl);
  await amqpAnswers(amqpUrl).catch((error: Error) => {
    throw new UsageError(`AMQP_URL (${host}) does not answer (${lastLine(error.message)}): start it or unset the variable`);
  });
  const configured = process.env.AMQP_MANAGEMENT_URL;
  if (configured !== undefined && configured !== '') {
    await managementAnswers(configured).catch((error: Error) => {
      throw new UsageError(`AMQP_MANAGEMENT_URL (${new URL(configured).host}) does not answer (${lastLine(error.message)}): correct or unset it`);
    });
    return { amqpUrl, amqpManagementUrl: configured };
  }
  // Where RabbitMQ and LavinMQ have it unless told otherwise, with the same login.
  const derived = new URL(amqpUrl.replace(/^amqps?:/, 'http:'));
  derived.port = '15672';
  derived.pathname = '/';
  if (derived.username === '') Object.assign(derived, { username: 'guest', password: 'guest' });
  const answers = await managementAnswers(derived.href).then(
    () => true,
    () => false,
  );
  return { amqpUrl, amqpManagementUrl: answers ? derived.href.replace(/\/$/, '') : null };
}
