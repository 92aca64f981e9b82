/** Looks for every secret of a mesh in every place where people or programs could read it in the clear. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { keptMeshKey, openWithMeshKey } from '../../src/link';
import type { Watched } from './observe';

type Searched = Pick<Watched, 'whole' | 'nodes' | 'modules'>;

export async function findExposures(watched: Searched): Promise<string[]> {
  const places = await placesToLook(watched);
  return [...secretsOf(watched), ...(await credentialsOf(watched))].flatMap(({ what, text }) =>
    places.filter((place) => place.text.includes(text)).map((place) => `${what} stands in ${place.name}`),
  );
}

function secretsOf({ whole, nodes }: Searched): Array<{ what: string; text: string }> {
  const { home } = whole.local.places;
  const ofFile = (file: string): string => readFileSync(join(home, file), 'utf8').trim();
  const client = JSON.parse(ofFile('client.json')) as { token: string };
  // The middle line of a PEM file is the key; its frame is the same everywhere.
  const keyIn = (pem: string): string => pem.split('\n')[1] ?? '';
  const found = [
    { what: 'the token of the local user', text: client.token },
    { what: 'the mesh key', text: ofFile('mesh.key') },
    { what: 'the signing key', text: keyIn(ofFile('signing.key')) },
    { what: "the broker's password", text: decodeURIComponent(new URL(whole.amqpUrl).password) },
    ...nodes.map((node) => ({
      what: `the key of ${node}`,
      text: keyIn(readFileSync(join(whole.local.places.nodes, node, 'state', 'node.key'), 'utf8')),
    })),
    ...nodes.map((node) => ({
      what: `the key that secrets of ${node} are sealed to`,
      text: keyIn(readFileSync(join(whole.local.places.nodes, node, 'state', 'seal.key'), 'utf8')),
    })),
    ...nodes.map((node) => {
      const { amqpUrl } = JSON.parse(ofFile(join('nodes', `${node}.json`))) as { amqpUrl: string };
      return { what: `the broker account of ${node}`, text: decodeURIComponent(new URL(amqpUrl).password) };
    }),
  ];
  // A password like "guest" stands everywhere; a real one is long.
  return found.filter(({ text }) => text.length >= 12);
}

/** What providers and consumers share. */
async function credentialsOf({ whole }: Searched): Promise<Array<{ what: string; text: string }>> {
  const key = keptMeshKey(whole.local.places.home);
  const rows = await whole.db.query<{ owner: string; name: string; version: number; sealed: string }>(
    'select owner, name, version, sealed from credential',
  );
  return rows.map(({ owner, name, version, sealed }) => ({
    what: `the credential ${owner}/${name} in version ${version}`,
    text: openWithMeshKey(key, sealed, `credential/${owner}/${name}/${version}`),
  }));
}

async function placesToLook({ whole, nodes, modules }: Searched): Promise<Array<{ name: string; text: string }>> {
  const { db, mesh, local } = whole;
  const tables = await db.query<{ name: string }>("select tablename as name from pg_tables where schemaname = 'public'");
  const rows = await Promise.all(
    tables.map(async ({ name }) => ({
      name: `table ${name}`,
      text: (await db.query<{ text: string | null }>(`select string_agg(t::text, ' ') as text from "${name}" t`))
        .map(({ text }) => text ?? '')
        .join(' '),
    })),
  );
  const logs = readdirSync(local.places.processes)
    .filter((file) => /\.log(\.old)?$/.test(file))
    .map((file) => ({ name: file, text: readFileSync(join(local.places.processes, file), 'utf8') }));
  const states = nodes.flatMap((node) => readable(join(local.places.nodes, node)));
  const answers = [
    { name: 'the status answer', text: JSON.stringify(await mesh.status()) },
    ...(await Promise.all(modules.map(async ({ name }) => ({ name: `the answer about ${name}`, text: JSON.stringify(await mesh.module(name)) })))),
    ...(await Promise.all(nodes.map(async (node) => ({ name: `the answer about ${node}`, text: JSON.stringify(await mesh.node(node)) })))),
  ];
  return [...rows, ...logs, ...states, ...answers, ...commandLines()];
}

/** Files of a node that others than their owner may read. */
function readable(folder: string): Array<{ name: string; text: string }> {
  return (readdirSync(folder, { recursive: true }) as string[]).flatMap((path) => {
    const file = join(folder, path);
    if (!existsSync(file)) return [];
    const { mode } = statSync(file);
    return statSync(file).isFile() && (mode & 0o077) !== 0 ? [{ name: file, text: readFileSync(file, 'latin1') }] : [];
  });
}

function commandLines(): Array<{ name: string; text: string }> {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const text = readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return [{ name: `the command line of process ${entry} (${text.slice(0, 40)})`, text }];
    } catch {
      return [];
    }
  });
}
