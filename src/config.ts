/** What the control plane is told from outside, by its environment alone. */
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { UsageError } from './domain/errors';
import { defaultTimes, type Times } from './domain/times';
import { duration } from './schema/primitives';

export interface Config {
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  /** Where people look at Temporal; null where nobody said. */
  readonly temporalUiUrl: string | null;
  readonly taskQueue: string;
  readonly databaseUrl: string;
  readonly amqpUrl: string;
  /** null: guessed from `amqpUrl` when an account is made. */
  readonly amqpManagementUrl: string | null;
  readonly registryUrl: string;
  /** State directory: key files, token, the nodes' credential files. */
  readonly home: string;
  readonly listen: { readonly host: string; readonly port: number };
  /** Where others reach the HTTP API and the board. */
  readonly publicUrl: string;
  readonly logLevel: string;
  readonly times: Times;
}

const address = z.string().regex(/^(\[[0-9a-fA-F:]+\]|[^\s:/]+):\d{1,5}$/, 'an address is host:port');

const variables = z.object({
  TEMPORAL_ADDRESS: address,
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  TEMPORAL_UI_URL: z.url({ protocol: /^https?$/ }).optional(),
  TALLY_TASK_QUEUE: z.string().min(1).default('control'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  AMQP_URL: z.url({ protocol: /^amqps?$/ }),
  AMQP_MANAGEMENT_URL: z.url({ protocol: /^https?$/ }).optional(),
  REGISTRY_URL: z.url({ protocol: /^https?$/ }),
  TALLY_HOME: z.string().min(1).default(join('.tally', 'home')),
  TALLY_LISTEN: address.default('127.0.0.1:7400'),
  TALLY_PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  TALLY_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('warn'),
});

/** @throws UsageError naming the first variable that is missing or wrong; never its value, which may hold a password. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  // An empty variable is one that was not set.
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = variables.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const variable = String(issue?.path[0] ?? '');
    throw new UsageError(
      `the control plane cannot start: ${variable} ${given[variable] === undefined ? 'is not set' : `is wrong (${issue?.message ?? ''})`}`,
    );
  }
  const read = parsed.data;
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(read.TALLY_LISTEN) ?? [];
  return {
    temporalAddress: read.TEMPORAL_ADDRESS,
    temporalNamespace: read.TEMPORAL_NAMESPACE,
    temporalUiUrl: read.TEMPORAL_UI_URL ?? null,
    taskQueue: read.TALLY_TASK_QUEUE,
    databaseUrl: read.DATABASE_URL,
    amqpUrl: read.AMQP_URL,
    amqpManagementUrl: read.AMQP_MANAGEMENT_URL ?? null,
    registryUrl: read.REGISTRY_URL,
    home: resolve(read.TALLY_HOME),
    listen: { host: host.replace(/^\[|\]$/g, ''), port: Number(port) },
    publicUrl: (read.TALLY_PUBLIC_URL ?? `http://${read.TALLY_LISTEN}`).replace(/\/+$/, ''),
    logLevel: read.TALLY_LOG_LEVEL,
    times: readTimes(given),
  };
}

/** TALLY_TIMES_READ_REFS=5s sets `readRefs`; a bare number is milliseconds. A name that is none is refused: it would do nothing. */
export function readTimes(environment: NodeJS.ProcessEnv): Times {
  const names = new Map(
    Object.keys(defaultTimes).map((name) => [`TALLY_TIMES_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`, name]),
  );
  const set: Record<string, number> = {};
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith('TALLY_TIMES_')) continue;
    const name = names.get(variable);
    if (name === undefined) throw new UsageError(`${variable} is no time of Tally's: use one of ${[...names.keys()].join(', ')}`);
    const read = duration.or(z.coerce.number().int().positive()).safeParse(value);
    if (!read.success) throw new UsageError(`${variable} is wrong: a time is a number and ms, s, m or h, as in 10s`);
    set[name] = read.data;
  }
  return { ...defaultTimes, ...set };
}
