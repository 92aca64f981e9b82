import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pino } from 'pino';
import type { BuilderLimits } from '../../src/builder';
import { defaultLimits, openHome, openJournal, startBuilder } from '../../src/builder';
import { closureOf } from '../../src/domain/closure';
import type { Delivery, Link } from '../../src/link';
import { canonicalDigest, declareTopology, EXCHANGES, keptSigningKey, openLink, QUEUES, UnroutableError } from '../../src/link';
import { createRegistryClient } from '../../src/registry';
import type { Answer, BuildAnswer, BuilderBeat, BuiltArtifact, Claim, ClaimReply, Input, LogLines } from '../../src/schema/messages';
import { answer, builderBeat, claim, logLines } from '../../src/schema/messages';
import { eventually } from '../support/eventually';
import type { FreshVhost } from '../support/servers';
import { freshVhost, registryUrl } from '../support/servers';
import { removeScratch, scratch } from './scratch';

/** A repository, a control plane that only claims and listens, and builders on a vhost of their own. */

const PLATFORM = 'linux-amd64';

interface Asked {
  request?: string;
  attempt?: number;
  module?: string;
}

interface AskedBuild extends Asked {
  inputs?: Input[];
  check?: boolean;
}

export type FitAnswer = Extract<BuildAnswer, { outcome: 'fit' }>;

export interface Control {
  vhost: FreshVhost;
  link: Link;
  answers: Answer[];
  claims: Claim[];
  beats: BuilderBeat[];
  logs: LogLines[];
  /** What could not be read, or replied to: none in a good test. */
  errors: unknown[];
  /** `null` gives no reply. */
  decide: (asked: Claim) => ClaimReply | null;
  inspect(repository: Repository, commit: string, more?: Asked): Promise<string>;
  build(repository: Repository, commit: string, more?: AskedBuild): Promise<string>;
  answerTo(request: string, timeoutMs?: number): Promise<Answer>;
  /** All lines of a request in their order. */
  linesOf(request: string): string[];
  waiting(queue: string): Promise<{ ready: number; unacknowledged: number }>;
  management(method: string, path: string): Promise<unknown>;
  close(): Promise<void>;
}

export async function startControl(): Promise<Control> {
  const vhost = await freshVhost();
  const link = await openLink({ url: vhost.amqpUrl, name: 'test control', onHandlerError: (error) => control.errors.push(error) });
  await declareTopology(link, { platforms: [PLATFORM, 'linux-arm64'] });
  const control: Control = {
    vhost,
    link,
    answers: [],
    claims: [],
    beats: [],
    logs: [],
    errors: [],
    decide: () => ({ v: 1, answer: 'go', reason: 'go on' }),
    inspect: (repository, commit, more) => send('inspect', repository, commit, more),
    build: (repository, commit, more) => send(`build.${PLATFORM}`, repository, commit, more),
    answerTo: (request, timeoutMs = 20_000) =>
      eventually(
        () =>
          there(
            control.answers.find((one) => one.request === request),
            `an answer to ${request}`,
          ),
        { timeoutMs },
      ),
    linesOf: (request) => {
      const mine = control.logs.filter((one) => one.request === request).sort((a, b) => a.from - b.from);
      return mine.flatMap((one) => one.lines);
    },
    async waiting(queue) {
      const stats = (await control.management('GET', `/api/queues/${vhost.vhost}/${queue}`)) as {
        messages_ready?: number;
        messages_unacknowledged?: number;
      };
      return { ready: stats.messages_ready ?? -1, unacknowledged: stats.messages_unacknowledged ?? -1 };
    },
    async management(method, path) {
      const url = new URL(path, vhost.managementUrl);
      const login = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
      url.username = '';
      url.password = '';
      const headers = { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
      const response = await fetch(url, { method, headers, signal: AbortSignal.timeout(10_000) });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text === '' ? null : JSON.parse(text);
    },
    close: () => link.close(),
  };

  async function send(queue: string, repository: Repository, commit: string, more: AskedBuild = {}) {
    const request = more.request ?? `request-${randomBytes(5).toString('hex')}`;
    const common = {
      ...{ v: 1, request, attempt: more.attempt ?? 1, module: more.module ?? repository.module },
      ...{ repository: repository.url, ref: 'refs/heads/main', commit },
    };
    const inputs = more.inputs ?? [];
    const closure = closureOf({ commit, inputs: inputs.map(({ module, artifact, digest }) => ({ module, artifact, digest })) }, canonicalDigest);
    const check = more.check === undefined ? {} : { check: more.check };
    const body =
      queue === 'inspect'
        ? { ...common, kind: 'inspect' }
        : { ...common, kind: 'build', mesh: 'home', platform: PLATFORM, closure, inputs, ...check };
    await link.publish(EXCHANGES.requests, queue, body);
    return request;
  }

  const listen = (queue: string, take: (delivery: Delivery) => Promise<void> | void) =>
    link.consume(queue, { prefetch: 100 }, async (delivery) => {
      await take(delivery);
      delivery.ack();
    });
  const parsed = (delivery: Delivery): unknown => JSON.parse(delivery.body.toString());
  await listen(QUEUES.claims, async (delivery) => {
    const asked = claim.parse(parsed(delivery));
    control.claims.push(asked);
    const reply = control.decide(asked);
    const { correlationId, replyTo } = delivery;
    if (reply === null || replyTo === null || correlationId === null) return;
    // The broker returns what goes to a direct reply, and delivers it.
    await link.publish('', replyTo, reply, { persistent: false, correlationId }).catch((error: unknown) => {
      if (!(error instanceof UnroutableError)) throw error;
    });
  });
  await listen(QUEUES.answers, (delivery) => void control.answers.push(answer.parse(parsed(delivery))));
  await listen(QUEUES.builderBeats, (delivery) => void control.beats.push(builderBeat.parse(parsed(delivery))));
  await listen(QUEUES.logs, (delivery) => void control.logs.push(logLines.parse(parsed(delivery))));
  return control;
}

export interface TestBuilder {
  name: string;
  home: string;
  publicKey: string;
  /** The sentences of its log. */
  said: string[];
  stop(): Promise<void>;
}

/** A builder in this process; what it leaves on the disk goes with `scratch`. */
export async function startTestBuilder(
  control: Control,
  options: { name?: string; home?: string; limits?: Partial<BuilderLimits>; beatMs?: number; platforms?: string[]; registryUrl?: string } = {},
): Promise<TestBuilder> {
  const name = options.name ?? 'builder-1';
  const home = await openHome(options.home ?? join(scratch(), 'builder'));
  const link = await openLink({ url: control.vhost.amqpUrl, name });
  const key = keptSigningKey(home.directory);
  const said: string[] = [];
  const builder = await startBuilder({
    ...{ link, home, key, version: '0.0.0-test' },
    registry: createRegistryClient({ url: options.registryUrl ?? registryUrl(), timeoutMs: 5_000 }),
    journal: await openJournal(home.directory),
    config: {
      name,
      platforms: options.platforms ?? [PLATFORM],
      beatMs: options.beatMs ?? 1_000,
      limits: { ...defaultLimits, minDiskBytes: 64 << 20, ...options.limits },
    },
    log: pino({ level: 'info' }, { write: (line: string) => void said.push((JSON.parse(line) as { msg: string }).msg) }),
  });
  return {
    name,
    home: home.directory,
    publicKey: key.publicKey,
    said,
    async stop() {
      await builder.stop();
      await link.close();
      await home.release();
    },
  };
}

/** One control plane and one builder for all tests of a file; there from the first of them on. */
export function builderOfFile(): { readonly control: Control; readonly builder: TestBuilder } {
  const started = {} as { control: Control; builder: TestBuilder };
  beforeAll(async () => {
    started.control = await startControl();
    started.builder = await startTestBuilder(started.control);
  });
  afterAll(async () => {
    await started.builder.stop();
    await started.control.close();
    removeScratch();
    expect(started.control.errors).toEqual([]);
  });
  return started;
}

/** Builds a commit and gives the answer. */
export async function answerOf(
  control: Control,
  repository: Repository,
  commit: string,
  { timeoutMs, ...more }: AskedBuild & { timeoutMs?: number } = {},
): Promise<BuildAnswer> {
  const answered = await control.answerTo(await control.build(repository, commit, more), timeoutMs);
  if (answered.kind !== 'build') throw new Error('an inspection answered');
  return answered;
}

/** The answer, where it is one of a fit build. */
export function fitOf(answered: BuildAnswer): FitAnswer {
  if (answered.outcome !== 'fit') throw new Error(JSON.stringify(answered));
  return answered;
}

/** What a build made of a commit, as the input of another. */
export function inputFrom({ name: artifact, ...made }: BuiltArtifact, from: Pick<Input, 'module' | 'commit'> & Partial<Input>): Input {
  return { ...made, artifact, names: [], test: false, ...from };
}

/** What this machine has compiled of Go before: to compile the standard library for each module anew takes minutes. */
export function warmGo(): { GOCACHE: string } {
  return { GOCACHE: execFileSync('go', ['env', 'GOCACHE'], { encoding: 'utf8' }).trim() };
}

export interface Repository {
  module: string;
  url: string;
  /** Writes the files over what is there, commits all, and gives the commit. */
  commit(files: Record<string, string>): string;
}

/** A module of its own name, so that its artifacts and tags in the shared registry are its own. */
export function newRepository(): Repository {
  const module = `m-${randomBytes(5).toString('hex')}`;
  const directory = join(scratch(), module);
  mkdirSync(directory);
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', directory, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args], { encoding: 'utf8' }).trim();
  git('init', '--quiet', '--initial-branch=main');
  return {
    module,
    url: `file://${directory}`,
    commit(files) {
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(directory, path)), { recursive: true });
        writeFileSync(join(directory, path), content);
        if (content.startsWith('#!')) chmodSync(join(directory, path), 0o755);
      }
      git('add', '--all');
      git('commit', '--quiet', '--allow-empty', '--message', 'change');
      return git('rev-parse', 'HEAD');
    },
  };
}

/** A module.yaml whose commands are these. */
export function manifestOf(repository: Repository, build: Record<string, unknown>, artifacts: Record<string, unknown> = {}): Record<string, string> {
  return { 'module.yaml': JSON.stringify({ module: repository.module, build, artifacts }) };
}

/** For `eventually`: what is not there yet is a complaint. */
export function there<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} is not there yet`);
  return value;
}
