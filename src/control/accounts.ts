/** A broker that was set up anew knows no node any more: those whose credentials lie here get the same account again. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listNodes } from '../inventory/nodes';
import { accountsOf, ensureNodeAccount, type Management } from '../link';
import type { ControlDeps } from './deps';

/**
 * @param home TALLY_HOME, with the credential files of nodes.
 * @returns the nodes that stay without an account: only new credentials help them.
 */
export async function restoreAccounts({ db, log }: Pick<ControlDeps, 'db' | 'log'>, management: Management, home: string): Promise<string[]> {
  const known = await accountsOf(management);
  const lost: string[] = [];
  for (const { name, brokerUser } of await listNodes(db)) {
    if (known.has(brokerUser)) continue;
    const password = await keptPassword(join(home, 'nodes', `${name}.json`), brokerUser);
    if (password === null) {
      lost.push(name);
      continue;
    }
    await ensureNodeAccount(management, name, password);
    log.warn({ node: name }, 'the broker had no account for this node any more: it has the same one again');
  }
  const [first] = lost;
  if (first !== undefined) {
    const others = lost.length > 1 ? `, and so for ${lost.length - 1} more nodes that tally doctor names` : '';
    log.warn({ node: first }, `the broker has no account for ${first} and its credentials do not lie here: tally node renew ${first}${others}`);
  }
  return lost;
}

async function keptPassword(file: string, user: string): Promise<string | null> {
  try {
    const { amqpUrl } = JSON.parse(await readFile(file, 'utf8')) as { amqpUrl?: unknown };
    const url = new URL(String(amqpUrl));
    return decodeURIComponent(url.username) === user && url.password !== '' ? decodeURIComponent(url.password) : null;
  } catch {
    return null;
  }
}
