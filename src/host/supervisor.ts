/**
 * Services where there is no systemd for us. Each has a small supervisor of its own, in a session of its own: it outlives
 * this host, and is adopted by pid and start time. Each start has a token. Whoever comes late with an old token, because
 * a kill came in between, finds that it is old and ends: so there is never a second copy.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { commandEnvironment } from './command';
import { ResourceFailed } from './failures';
import { endSession, isAlive, readMark } from './processes';
import type { LastWords, ServiceRunner, StartedFrom } from './runner';

interface Started extends StartedFrom {
  readonly stopWithinMs: number;
}

/**
 * Writes down who it is, then looks whether its supervisor lives and its token counts: whoever ends a service makes both
 * untrue before looking for it.
 */
const SERVICE = `
tally_d=$1 tally_t=$2 tally_s=$3 tally_b=$4 tally_c=$5 tally_e=$6; shift 6
printf '%s %s %s\\n' $$ "$(cut -d' ' -f22 /proc/$$/stat)" "$tally_b" >"$tally_d/$tally_t.service.new" &&
mv -f "$tally_d/$tally_t.service.new" "$tally_d/$tally_t.service" || exit 1
[ "$(cat "$tally_d/token")" = "$tally_t" ] || exit 0
case "$(cut -d' ' -f3 "/proc/$tally_s/stat")" in Z|X|'') exit 0;; esac
if [ -n "$tally_e" ]; then
  while IFS= read -r tally_l || [ -n "$tally_l" ]; do
    case $tally_l in [A-Za-z_]*=*) export "$tally_l";; esac
  done <"$tally_e" || exit 1
fi
cd "$tally_c" || exit 1
exec "$@"`;

/** Restarts with backoff, one second to half a minute, and keeps the log short. */
const SUPERVISOR = `
tally_d=$1 tally_t=$2 tally_c=$3 tally_e=$4 tally_x=$5; shift 5
tally_b=$(cat /proc/sys/kernel/random/boot_id)
printf '%s %s %s\\n' $$ "$(cut -d' ' -f22 /proc/$$/stat)" "$tally_b" >"$tally_d/$tally_t.supervisor.new" &&
mv -f "$tally_d/$tally_t.supervisor.new" "$tally_d/$tally_t.supervisor" || exit 1
[ "$(cat "$tally_d/token")" = "$tally_t" ] || exit 0
while sleep 5 && [ -d /proc/$$ ]; do
  umask 077
  if [ "$(stat -c %s "$tally_d/log")" -gt ${1 << 20} ]; then
    tail -c ${512 << 10} "$tally_d/log" >"$tally_d/log.old" && : >"$tally_d/log"
  fi
done >/dev/null 2>&1 &
tally_p=1
while :; do
  tally_a=$(date +%s)
  setsid /bin/sh "$tally_x" "$tally_d" "$tally_t" $$ "$tally_b" "$tally_c" "$tally_e" "$@" &
  wait $!
  tally_r=$?
  kill -KILL -- -$! 2>/dev/null
  [ "$(cat "$tally_d/token")" = "$tally_t" ] || exit 0
  [ $(($(date +%s) - tally_a)) -ge 60 ] && tally_p=1
  echo "it ended with status $tally_r; started again in $tally_p s"
  sleep $tally_p
  tally_p=$((tally_p * 2)); [ $tally_p -gt 30 ] && tally_p=30
done`;

/** Of a service whose record is gone. */
const STOP_WITHIN_MS = 10_000;
const LAST_BYTES = 4_096;
/** Of a log that is longer: half a secret would not be known for one. */
const CUT_BYTES = 256;

export function supervisorRunner(state: string): ServiceRunner {
  const directoryOf = (name: string): string => join(state, 'services', name);

  return {
    async find(name) {
      const directory = directoryOf(name);
      const token = readText(join(directory, 'token'));
      const started = token === '' ? null : readStarted(directory, token);
      if (started === null) return null;
      const supervisor = readMark(join(directory, `${token}.supervisor`));
      const service = readMark(join(directory, `${token}.service`));
      if (supervisor === null || service === null || !isAlive(supervisor) || !isAlive(service)) return null;
      return { ...service, print: started.print, change: started.change };
    },

    async start(spec, { print, change }) {
      if (!existsSync(spec.directory)) throw new ResourceFailed(`its directory ${spec.directory} is not there`);
      const directory = directoryOf(spec.name);
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const token = randomBytes(8).toString('hex');
      const started: Started = { print, change, stopWithinMs: spec.stopWithinMs };
      writeFileSync(join(directory, `${token}.json`), JSON.stringify(started), { mode: 0o600 });
      setToken(directory, token);
      await endAll(directory, token);
      const scripts = writeScripts(state);
      const log = openSync(join(directory, 'log'), 'a', 0o600);
      try {
        const args = [directory, token, spec.directory, spec.environmentFile ?? '', scripts.service, ...spec.command];
        const child = spawn('/bin/sh', [scripts.supervisor, ...args], {
          cwd: '/',
          env: { ...commandEnvironment(), ...spec.env },
          detached: true,
          stdio: ['ignore', log, log],
        });
        // Shows as a service that does not run.
        child.on('error', () => undefined);
        child.unref();
      } finally {
        closeSync(log);
      }
    },

    async stop(name) {
      const directory = directoryOf(name);
      if (!existsSync(directory)) return;
      setToken(directory, '');
      await endAll(directory, '');
      rmSync(directory, { recursive: true, force: true });
    },

    async lastWords(name) {
      const { line, status } = await lastOf(join(directoryOf(name), 'log'));
      return { line, status: (await this.find(name)) === null ? status : null };
    },
  };
}

/** In files, so that a list of processes is one to read. What runs keeps the file that it was started from. */
function writeScripts(state: string): { readonly supervisor: string; readonly service: string } {
  const write = (name: string, text: string): string => {
    const path = join(state, name);
    if (readText(path) !== text.trim()) {
      writeFileSync(`${path}.new`, text, { mode: 0o700 });
      renameSync(`${path}.new`, path);
    }
    return path;
  };
  return { supervisor: write('supervisor.sh', SUPERVISOR), service: write('service.sh', SERVICE) };
}

/** Ends all of a state directory, and keeps what is known of them. */
export async function stopSupervised(state: string): Promise<void> {
  const services = join(state, 'services');
  if (!existsSync(services)) return;
  const names = readdirSync(services, { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? [one.name] : []));
  await Promise.all(
    names.map(async (name) => {
      setToken(join(services, name), '');
      await endAll(join(services, name), '');
    }),
  );
}

/** Supervisors first, so that nothing is started again; then what they started. All but the one of the token. */
async function endAll(directory: string, token: string): Promise<void> {
  const others = readdirSync(directory).filter((file) => /^[0-9a-f]+\./.test(file) && !file.startsWith(`${token || '-'}.`));
  const marks = (kind: string): string[] => others.filter((file) => file.endsWith(`.${kind}`));
  await Promise.all(
    marks('supervisor').map(async (file) => {
      const mark = readMark(join(directory, file));
      if (mark !== null) await endSession(mark, 0);
    }),
  );
  // Those that began while their supervisor was ended have written themselves down by now, or never start.
  const services = readdirSync(directory).filter((file) => file.endsWith('.service') && !file.startsWith(`${token || '-'}.`));
  await Promise.all(
    services.map(async (file) => {
      const mark = readMark(join(directory, file));
      const started = readStarted(directory, file.split('.')[0] ?? '');
      if (mark !== null) await endSession(mark, started?.stopWithinMs ?? STOP_WITHIN_MS);
    }),
  );
  for (const file of [...others, ...services]) rmSync(join(directory, file), { force: true });
}

function setToken(directory: string, token: string): void {
  const path = join(directory, 'token');
  writeFileSync(`${path}.new`, token, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

function readStarted(directory: string, token: string): Started | null {
  try {
    return JSON.parse(readFileSync(join(directory, `${token}.json`), 'utf8')) as Started;
  } catch {
    return null;
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** The last line of the service itself, and the status with which it ended last. */
async function lastOf(path: string): Promise<LastWords> {
  try {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      const { buffer, bytesRead } = await file.read(Buffer.alloc(LAST_BYTES), 0, LAST_BYTES, Math.max(0, size - LAST_BYTES));
      const lines = buffer
        .toString('utf8', size > LAST_BYTES ? CUT_BYTES : 0, bytesRead)
        .trim()
        .split('\n');
      const ends = lines.map((line) => /^it ended with status (\d+); started again in \d+ s$/.exec(line)?.[1]);
      const status = ends.findLast((one) => one !== undefined);
      const line = lines.findLast((_, at) => ends[at] === undefined)?.trim() ?? '';
      return { line, status: status === undefined ? null : Number(status) };
    } finally {
      await file.close();
    }
  } catch {
    return { line: '', status: null };
  }
}
