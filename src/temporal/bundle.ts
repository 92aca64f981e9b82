/**
 * The workflows' code as one text, made by a process of its own: what makes it takes 100 MiB, which the control plane
 * would keep for as long as it runs.
 */
import { fork } from 'node:child_process';
import { bundleWorkflowCode } from '@temporalio/worker';

const WITHIN_MS = 120_000;

export async function bundleWorkflows(): Promise<{ readonly code: string }> {
  return await new Promise((resolve, reject) => {
    const child = fork(__filename, [], { timeout: WITHIN_MS, killSignal: 'SIGKILL', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    let bundle: { readonly code: string } | null = null;
    child.once('message', (message) => {
      bundle = message as { readonly code: string };
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (bundle === null) reject(new Error(`the workflows could not be bundled: the process that does it ended with ${code ?? signal}`));
      else resolve(bundle);
    });
  });
}

async function main(): Promise<void> {
  const quiet = {
    log: () => undefined,
    trace: () => undefined,
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
  };
  const { code } = await bundleWorkflowCode({ workflowsPath: require.resolve('../../workflows/index'), logger: quiet });
  // It is long: the channel is closed once all of it is through.
  process.send?.({ code }, () => process.disconnect());
}

if (require.main === module) {
  main().catch((error: unknown) => {
    process.stderr.write(`the workflows could not be bundled: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  });
}
