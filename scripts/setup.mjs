// Set-up before `npm start` and `npm test`: packages when they differ from the lock file, a build when sources are newer
// than it. Runs before anything is installed, so it uses Node alone.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const sources = ['src', 'workflows', 'activities', 'workers', 'test', 'bench', 'tsconfig.json', 'package-lock.json'];
const stamp = join(root, 'dist', '.built');

checkNode();
step('packages', packagesDiffer(), 'npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
const beforeBuild = new Date();
step('build', newestChange() > changeOf(stamp), 'npm', ['run', '--silent', 'build']);
mkdirSync(dirname(stamp), { recursive: true });
writeFileSync(stamp, '');
// What is edited while it builds is newer than the build.
utimesSync(stamp, beforeBuild, beforeBuild);

function checkNode() {
  const wanted = readJson('package.json').engines.node.replace('>=', '');
  const [major, minor] = wanted.split('.').map(Number);
  const [hasMajor, hasMinor] = process.versions.node.split('.').map(Number);
  if (hasMajor > major || (hasMajor === major && hasMinor >= minor)) return;
  fail(`tally needs Node ${wanted} or newer, this is ${process.versions.node}: install a newer one, for example with "nvm install ${major}"`);
}

/** One short line with its time; what the command says is shown only when it fails. */
function step(title, isNeeded, command, args) {
  const began = performance.now();
  const say = (mark, detail) => {
    process.stderr.write(`${mark} ${title.padEnd(10)} ${detail}  ${((performance.now() - began) / 1000).toFixed(1)} s\n`);
  };
  if (!isNeeded) return say('✓', 'up to date, skipped');
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  if (status === 0) return say('✓', `${command} ${args.filter((arg) => !arg.startsWith('-')).join(' ')}`);
  say('✗', 'failed');
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`);
  fail(`"${command} ${args.join(' ')}" failed${error ? `: ${error.message}` : ''}: mend what it says above, then try again`);
}

/**
 * Whether what is installed is something else than the lock file says. Compared by content: times say nothing after a
 * checkout. Optional packages are for other kinds of machine too.
 */
function packagesDiffer() {
  const installedLock = 'node_modules/.package-lock.json';
  if (!existsSync(join(root, installedLock))) return true;
  const wanted = readJson('package-lock.json').packages;
  const installed = readJson(installedLock).packages;
  const isWrong = ([path, { version, optional, devOptional, peer }]) => {
    if (path === '') return false;
    const there = installed[path];
    return there === undefined ? !(optional || devOptional || peer) : there.version !== version;
  };
  return Object.entries(wanted).some(isWrong) || Object.keys(installed).some((path) => wanted[path] === undefined);
}

/** Folders count too: a file that was deleted changes only its folder. */
function newestChange() {
  const paths = sources.map((source) => join(root, source)).filter((path) => existsSync(path));
  const changes = paths.flatMap((path) => [
    changeOf(path),
    ...(statSync(path).isDirectory() ? readdirSync(path, { recursive: true }).map((inner) => changeOf(join(path, inner))) : []),
  ]);
  return Math.max(...changes);
}

function changeOf(path) {
  return existsSync(path) ? statSync(path).mtimeMs : 0;
}

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

function fail(line) {
  process.stderr.write(`${line}\n`);
  process.exit(1);
}
