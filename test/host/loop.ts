/** A host that applies one declaration after the other, until it is killed. Its arguments: root, state, a file of lists of resources. */
import { readFileSync } from 'node:fs';
import { openHost } from '../../src/host/context';
import type { DeclaredResource } from '../../src/schema/declaration';
import { declarationOf } from './machine';

async function main(): Promise<void> {
  const [root = '', state = '', lists = ''] = process.argv.slice(2);
  const all = JSON.parse(readFileSync(lists, 'utf8')) as DeclaredResource[][];
  const host = await openHost({ root, state, settleMs: 20, registry: null });
  process.stdout.write('ready\n');
  for (let turn = (host.declaration()?.sequence ?? 0) + 1; ; turn++) {
    const declaration = declarationOf(all[turn % all.length] ?? [], turn);
    host.accept(declaration);
    await host.engine.apply(declaration, new AbortController().signal);
  }
}

void main();
