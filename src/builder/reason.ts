import { constants } from 'node:os';
import { plainLine } from './log';

const REASON_MAX = 500;

/** One line that a person can act on, without a password that a URL in it may hold. */
export function reasonLine(text: string): string {
  return plainLine(withoutLogin(text), REASON_MAX);
}

export function withoutLogin(text: string): string {
  return text.replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, '$1');
}

/** `exit status 139 (SIGSEGV)` */
export function statusWords(status: number): string {
  const signal = Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0];
  return `exit status ${status}${signal === undefined ? '' : ` (${signal})`}`;
}

/** 90 s, 10 min, 1 h */
export function timeWords(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}

/** 512 MiB */
export function sizeWords(bytes: number): string {
  const [unit, factor] = bytes < 1024 ** 3 ? (['MiB', 1024 ** 2] as const) : (['GiB', 1024 ** 3] as const);
  return `${Math.round((bytes / factor) * 10) / 10} ${unit}`;
}
