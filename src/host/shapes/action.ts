/** A command that is run while another one says that it is wanted; what it did is never undone. */
import type { z } from 'zod';
import type { shapes } from '../../schema/declaration';
import { runCommand } from '../command';
import { type HostContext, ResourceFailed, type Shape } from '../shape';

type Spec = z.infer<typeof shapes.action>;

export const action: Shape<Spec, null> = {
  target: (spec, module) => `${module}/${spec.name}`,

  async read({ spec, signal }, host) {
    const { isDone, says } = await run(spec.unless, spec, host, signal);
    return isDone ? { holds: true, memo: null } : { holds: false, why: `${spec.unless.join(' ')} ${says}` };
  },

  async apply({ spec, signal, intend }, host) {
    intend(null);
    const { isDone, says } = await run(spec.run, spec, host, signal);
    if (!isDone) throw new ResourceFailed(`${spec.run.join(' ')} ${says}`);
  },

  async remove() {
    // Nobody knows what it did.
  },
};

function run(command: readonly string[], { timeout }: Spec, { root }: HostContext, signal: AbortSignal) {
  return runCommand(command.map(root.fill), { directory: root.path, timeoutMs: timeout, signal });
}
