import { join } from 'node:path';

/** Becomes the process that runs a host or a builder: what stands after the verb is its own. */
export function startWorker(name: 'host' | 'builder'): void {
  const file = join(__dirname, '..', '..', 'workers', `${name}.js`);
  process.argv.splice(1, 2, file);
  require(file);
}
