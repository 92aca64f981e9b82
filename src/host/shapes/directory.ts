/** A directory with a mode. One that was there before keeps its content always, and gets its mode back. */
import { chmodSync } from 'node:fs';
import type { z } from 'zod';
import type { shapes } from '../../schema/declaration';
import { ResourceFailed } from '../failures';
import { normalTarget, statOf } from '../root';
import type { Shape } from '../shape';

type Spec = z.infer<typeof shapes.directory>;

interface Memo {
  readonly path: string;
  /** Mode of a directory that this host did not make. */
  readonly before: number | null;
}

/** Of the directories that this host makes on the way to a target. */
const UNDECLARED_MODE = 0o755;

export const directory: Shape<Spec, Memo> = {
  target: (spec) => normalTarget(spec.path) ?? spec.path,

  async read({ spec, entry }, host) {
    const { path } = host.root.locate(spec.path);
    const found = statOf(path);
    if (found === null) return { holds: false, why: 'it is not there' };
    if (!found.isDirectory()) return { holds: false, why: 'it is not a directory' };
    if ((found.mode & 0o7777) !== Number.parseInt(spec.mode, 8))
      return { holds: false, why: `its mode is ${(found.mode & 0o7777).toString(8).padStart(4, '0')}` };
    return { holds: true, memo: entry?.memo ?? { path: spec.path, before: host.hasMade(path) ? null : found.mode & 0o7777 } };
  },

  async apply({ spec, entry, intend }, host) {
    const place = host.root.locate(spec.path);
    const found = statOf(place.path);
    if (found !== null && !found.isDirectory()) throw new ResourceFailed(`${place.path} is there and is not a directory`);
    const isOthers = found !== null && !host.hasMade(place.path);
    const before = isOthers ? found.mode & 0o7777 : null;
    intend({ path: spec.path, before: entry === null ? before : entry.memo.before });
    host.makeDirectories(place.path);
    chmodSync(place.path, Number.parseInt(spec.mode, 8));
  },

  /** One that this host made goes at the end of the pass when it is empty; if not, it is one that nobody declares. */
  async remove({ path, before }, host) {
    const place = host.root.locate(path);
    if (statOf(place.path)?.isDirectory()) chmodSync(place.path, before ?? UNDECLARED_MODE);
  },
};
