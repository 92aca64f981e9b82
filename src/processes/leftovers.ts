/** Which processes of this machine still belong to a data directory: the proof that a stop has left nothing. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface Left {
  readonly pid: number;
  readonly command: string;
}

/** Live processes that were started with, or work in, something of the directory; ourselves apart. */
export function processesOf(dataDir: string): Left[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .flatMap((entry) => {
      const command = read(`/proc/${entry}/cmdline`).replaceAll('\0', ' ').trim();
      // Kernel threads and zombies have no command line.
      if (command === '') return [];
      const works = [command, read(`/proc/${entry}/environ`), linkOf(`/proc/${entry}/cwd`)].some((text) => text.includes(dataDir));
      return works ? [{ pid: Number(entry), command }] : [];
    });
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
