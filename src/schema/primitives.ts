import { z } from 'zod';

/** The small forms that several schemas share. */

export const name = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, 'a name is lower-case letters, digits and dashes, at most 63');

export const commit = z.string().regex(/^[0-9a-f]{40}([0-9a-f]{24})?$/);

export const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

export const instant = z.iso.datetime();

export const absolutePath = z
  .string()
  .startsWith('/', 'a path is absolute')
  .refine((p) => !p.includes('\0'), 'a path holds no NUL');

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** "90s", "10m", "1h" → milliseconds. */
export const duration = z
  .string()
  .regex(/^\d+(ms|s|m|h)$/, 'a duration is a number and ms, s, m or h, as in 10m')
  .transform((text) => {
    const [, count = '0', unit = 's'] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? [];
    return Number(count) * (units[unit] ?? 1_000);
  });

const sizes: Record<string, number> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

/** "512M" → bytes. */
export const memory = z
  .string()
  .regex(/^\d+[KMG]$/, 'a size is a number and K, M or G, as in 512M')
  .transform((text) => Number(text.slice(0, -1)) * (sizes[text.slice(-1)] ?? 1));

/** How an artifact lies in the registry and, for the last four, by which language's own tool others build on it. */
export const artifactKind = z.enum(['archive', 'file', 'go', 'npm', 'wheel', 'crate']);
export type ArtifactKind = z.infer<typeof artifactKind>;

/** At most 0600: what a file that holds a secret may have. */
export function isPrivateMode(mode: string): boolean {
  return /^0[0246]00$/.test(mode);
}
