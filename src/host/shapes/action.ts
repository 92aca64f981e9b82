/** A command that is run while another one says that it is wanted, and one that undoes it when it is no longer declared. */
import type { z } from 'zod';
import type { shapes } from '../../schema/declaration';
import { runCommand } from '../command';
import type { Entry } from '../entry';
import { ResourceFailed } from '../failures';
import type { HostContext, Shape } from '../shape';

type Spec = z.infer<typeof shapes.action>;

/** null: nothing can be undone. */
type Memo = { readonly undo: readonly string[]; readonly timeout: number } | null;

export const action: Shape<Spec, Memo> = {
  target: (spec, module) => `${module}/${spec.name}`,

  async read({ spec, entry, signal }, host) {
    const { isDone, says } = await run(spec.unless, spec.timeout, host, signal);
    return isDone ? { holds: true, memo: memoOf(spec, entry) } : { holds: false, why: `${spec.unless.join(' ')} ${says}` };
  },

  async apply({ spec, signal, intend }, host) {
    intend(undoing(spec));
    const { isDone, says } = await run(spec.run, spec.timeout, host, signal);
    if (!isDone) throw new ResourceFailed(`${spec.run.join(' ')} ${says}`);
  },

  /** Also after a `run` that failed or was cut off: nobody knows how far it came. */
  async remove(memo, host, signal) {
    if (memo === null) return;
    const { isDone, says } = await run(memo.undo, memo.timeout, host, signal);
    if (!isDone) throw new ResourceFailed(`${memo.undo.join(' ')} ${says}`);
  },
};

/** What held before this host ever ran it is not this host's to undo. */
function memoOf(spec: Spec, entry: Entry<Memo> | null): Memo {
  if (entry === null || entry.change === 0) return null;
  const memo = undoing(spec);
  return JSON.stringify(memo) === JSON.stringify(entry.memo) ? entry.memo : memo;
}

function undoing({ undo, timeout }: Spec): Memo {
  return undo === undefined ? null : { undo, timeout };
}

function run(command: readonly string[], timeoutMs: number, { root }: HostContext, signal: AbortSignal) {
  return runCommand(command.map(root.fill), { directory: root.path, timeoutMs, signal });
}
