import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../domain/errors';
import { defaultTimes } from '../domain/times';
import { duration, memory, name } from '../schema/primitives';

/** What a builder is told from outside, from the environment alone. Times in milliseconds, sizes in bytes. */
export interface BuilderConfig {
  amqpUrl: string;
  registryUrl: string;
  name: string;
  home: string;
  platforms: string[];
  beatMs: number;
  logLevel: string;
  limits: BuilderLimits;
}

/** The builder's own limits: going beyond them is environmental, whatever the manifest declares. */
export interface BuilderLimits {
  checkoutMs: number;
  fetchMs: number;
  buildMs: number;
  memoryBytes?: number | undefined;
  /** A build begins only with this much free space, and is stopped where a sixteenth of it is left. */
  minDiskBytes: number;
  cacheBytes: number;
}

const GIB = 1024 ** 3;

export const defaultLimits: BuilderLimits = {
  checkoutMs: 10 * 60_000,
  fetchMs: 10 * 60_000,
  buildMs: 2 * 3_600_000,
  minDiskBytes: GIB,
  cacheBytes: 10 * GIB,
};

const variables = z.object({
  AMQP_URL: z.url({ protocol: /^amqps?$/ }),
  REGISTRY_URL: z.url({ protocol: /^https?$/ }),
  TALLY_BUILDER_NAME: name.default(ownName()),
  TALLY_BUILDER_HOME: z.string().min(1).default(join('.tally', 'builder')),
  TALLY_PLATFORMS: z
    .string()
    .regex(/^[a-z0-9]+-[a-z0-9]+(,[a-z0-9]+-[a-z0-9]+)*$/, 'platforms are os-architecture, with commas between')
    .default(ownPlatform()),
  TALLY_TIMES_BUILDER_BEAT: duration.or(z.coerce.number().int().positive()).default(defaultTimes.builderBeat),
  TALLY_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('warn'),
  TALLY_BUILDER_CHECKOUT_TIMEOUT: duration.default(defaultLimits.checkoutMs),
  TALLY_BUILDER_FETCH_TIMEOUT: duration.default(defaultLimits.fetchMs),
  TALLY_BUILDER_TIMEOUT: duration.default(defaultLimits.buildMs),
  TALLY_BUILDER_MEMORY: memory.optional(),
  TALLY_BUILDER_MIN_DISK: memory.default(defaultLimits.minDiskBytes),
  TALLY_BUILDER_CACHE: memory.default(defaultLimits.cacheBytes),
});

/** @throws UsageError naming the first variable that is missing or wrong; never its value, which may hold a password. */
export function readBuilderConfig(environment: NodeJS.ProcessEnv): BuilderConfig {
  // An empty variable is one that was not set.
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = variables.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const variable = String(issue?.path[0] ?? '');
    const isMissing = given[variable] === undefined;
    throw new UsageError(`the builder cannot start: ${variable} ${isMissing ? 'is not set' : `is wrong: ${issue?.message ?? ''}`}`);
  }
  const read = parsed.data;
  return {
    amqpUrl: read.AMQP_URL,
    registryUrl: read.REGISTRY_URL,
    name: read.TALLY_BUILDER_NAME,
    home: resolve(read.TALLY_BUILDER_HOME),
    platforms: [...new Set(read.TALLY_PLATFORMS.split(','))],
    beatMs: read.TALLY_TIMES_BUILDER_BEAT,
    logLevel: read.TALLY_LOG_LEVEL,
    limits: {
      checkoutMs: read.TALLY_BUILDER_CHECKOUT_TIMEOUT,
      fetchMs: read.TALLY_BUILDER_FETCH_TIMEOUT,
      buildMs: read.TALLY_BUILDER_TIMEOUT,
      memoryBytes: read.TALLY_BUILDER_MEMORY,
      minDiskBytes: read.TALLY_BUILDER_MIN_DISK,
      cacheBytes: read.TALLY_BUILDER_CACHE,
    },
  };
}

function ownName(): string {
  const own =
    hostname()
      .toLowerCase()
      .split('.')[0]
      ?.replace(/[^a-z0-9-]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 63) ?? '';
  return own === '' ? 'builder' : own;
}

function ownPlatform(): string {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  return `${process.platform}-${architecture}`;
}
