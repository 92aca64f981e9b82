/** What a mesh is, from its facts, its machines' disks, git, the broker and the processes: for `checkInvariants`. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Observed, ObservedBuild, ObservedModule, ObservedNode, ObservedPlacement } from '../support/invariants';
import type { WholeMesh } from './mesh';
import type { QuickModule } from './quickModule';
import { findExposures } from './secrets';

export interface Watched {
  readonly whole: WholeMesh;
  readonly modules: readonly QuickModule[];
  readonly nodes: readonly string[];
  readonly port: (node: string, module: string) => number;
  /** Planted before any host ran: by node, path under its root and content. */
  readonly foreign: ReadonlyArray<{ readonly node: string; readonly path: string; readonly content: string }>;
}

export async function observe(watched: Watched): Promise<Observed> {
  return {
    modules: await modulesOf(watched),
    builds: await buildsOf(watched),
    placements: await placementsOf(watched),
    nodes: await Promise.all(watched.nodes.map((node) => nodeOf(watched, node))),
    requests: await watched.whole.db.query(
      `select id as request, coalesce(trouble_reason, state) as reason,
         (case when trouble_reason is null then requested_at else trouble_since end)::text as since
       from request where state in ('requested', 'published', 'taken')`,
    ),
    forgedFound: (await watched.whole.db.query<{ mark: string }>("select node || '/' || epoch as mark from report where epoch like 'forged%'")).map(
      ({ mark }) => mark,
    ),
    exposures: await findExposures(watched),
    twice: twiceRunning(watched),
    queued: await queuesOf(watched),
  };
}

async function modulesOf({ whole, modules }: Watched): Promise<ObservedModule[]> {
  const rows = await whole.db.query<Omit<ObservedModule, 'gitHead'>>(
    `select m.name as module, m.head_commit as "knownHead", m.in_step as "isInStep", m.situation, m.reason, m.since::text as since, m.needs_person as "needsPerson",
       case when i.outcome = 'invalid' then 'invalid'
         else (select b.verdict from build b where b.module = m.name and b.commit = m.head_commit and b.verdict is not null order by b.try_number desc limit 1) end as "headOutcome"
     from module m left join inspection i on i.module = m.name and i.commit = m.head_commit`,
  );
  return rows.map((row) => ({ ...row, gitHead: modules.find(({ name }) => name === row.module)?.head() ?? '' }));
}

async function buildsOf({ whole, modules }: Watched): Promise<ObservedBuild[]> {
  const rows = await whole.db.query<Omit<ObservedBuild, 'isBroken'>>(
    `select b.id as build, b.module, b.commit, b.verdict,
       coalesce((select json_agg(a.body ->> 'outcome' order by a.received_at) from answer a where a.request_id = b.id), '[]') as answers
     from build b`,
  );
  const broken = new Set(modules.flatMap(({ commits }) => commits.filter(({ isBroken }) => isBroken).map(({ commit }) => commit)));
  return rows.map((row) => ({ ...row, isBroken: broken.has(row.commit) }));
}

async function placementsOf({ whole, modules, port }: Watched): Promise<ObservedPlacement[]> {
  const rows = await whole.db.query<Omit<ObservedPlacement, 'answering'>>(
    `select p.module, p.node, p.build_id as build, b.commit, e.commit as "effectiveCommit",
       p.want_digest as "wantDigest", p.applied_digest as "appliedDigest", p.outstanding_since::text as "outstandingSince"
     from placement p join module m on m.name = p.module left join build b on b.id = p.build_id left join build e on e.id = m.effective_build`,
  );
  return await Promise.all(
    rows.map(async (row) => {
      const version = await answerAt(port(row.node, row.module));
      const module = modules.find(({ name }) => name === row.module);
      return { ...row, answering: module?.commits.find((one) => one.version === version)?.commit ?? version };
    }),
  );
}

async function answerAt(port: number): Promise<string | null> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/version`, { signal: AbortSignal.timeout(3_000) });
    return (await response.text()).trim();
  } catch {
    return null;
  }
}

interface NodeFacts {
  readonly sentSequence: number | null;
  readonly ownSequence: number;
  readonly receivedSequence: number;
  readonly waits: ObservedNode['waits'];
}

async function nodeOf(watched: Watched, node: string): Promise<ObservedNode> {
  const { db } = watched.whole;
  const [facts] = await db.query<NodeFacts>(
    `select sent_sequence::int as "sentSequence", own_sequence::int as "ownSequence", received_sequence::int as "receivedSequence",
       array_to_json(array_remove(array[
         case when send_trouble is not null then jsonb_build_object('what', 'send', 'reason', send_trouble, 'since', send_trouble_since) end,
         case when not_worked_out is not null then jsonb_build_object('what', 'work-out', 'reason', not_worked_out, 'since', not_worked_out_since) end,
         case when refused_reason is not null then jsonb_build_object('what', 'refusal', 'reason', refused_reason, 'since', refused_since) end
       ]::jsonb[], null)) as waits
     from node where name = $1`,
    [node],
  );
  if (facts === undefined) throw new Error(`there is no node ${node}`);
  const declarations = await db.query<ObservedNode['declarations'][number]>(
    `select sequence::int as sequence, confirmed_at is not null as "isConfirmed",
       coalesce((select json_agg(value ->> 'build') from jsonb_each(content -> 'builds')), '[]') as builds
     from declaration where node = $1 order by sequence`,
    [node],
  );
  const reports = await db.query<ObservedNode['reports'][number]>(
    `select epoch, number::int as number, body ->> 'node' as "signedFor",
       case when body -> 'refused' = 'null' then (body -> 'declaration' ->> 'sequence')::int end as sequence
     from report where node = $1 order by min(received_at) over (partition by epoch), number`,
    [node],
  );
  return { node, ...facts, declarations, reports, ...diskOf(watched, node, await declaredCommits(watched, node)) };
}

async function declaredCommits({ whole }: Watched, node: string): Promise<ReadonlyMap<string, string>> {
  const rows = await whole.db.query<{ module: string; commit: string }>(
    'select p.module, b.commit from placement p join build b on b.id = p.build_id where p.node = $1',
    [node],
  );
  return new Map(rows.map(({ module, commit }) => [module, commit]));
}

/** Whatever lies under the root is declared, or was planted; anything else is what a write left behind. */
function diskOf(
  { whole, modules, foreign }: Watched,
  node: string,
  declared: ReadonlyMap<string, string>,
): Pick<ObservedNode, 'foreign' | 'files' | 'leftovers'> {
  const root = join(whole.local.places.nodes, node, 'root');
  const read = (path: string): string | null => (existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : null);
  const planted = foreign.filter((one) => one.node === node);
  const files = modules.flatMap(({ name, versionAt }) => {
    const commit = declared.get(name);
    const version = commit === undefined ? null : versionAt(commit);
    if (version === null) return [];
    return [
      { path: `opt/${name}/version`, declared: version },
      { path: `etc/${name}/version`, declared: version },
      { path: `etc/${name}/node`, declared: node },
    ];
  });
  const known = new Set([...files, ...planted].map(({ path }) => path));
  return {
    foreign: planted.map(({ path, content }) => ({ path, before: content, now: read(path) })),
    files: files.map((file) => ({ ...file, onDisk: read(file.path) })),
    leftovers: filesUnder(root).filter((path) => !known.has(path)),
  };
}

function filesUnder(root: string): string[] {
  return (readdirSync(root, { recursive: true }) as string[]).filter((path) => !statSync(join(root, path)).isDirectory());
}

/** Each service is one python; the same node and module twice is a copy too many. */
function twiceRunning({ whole, modules, nodes }: Watched): string[] {
  const commands = readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      return [readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0')];
    } catch {
      return [];
    }
  });
  return nodes.flatMap((node) =>
    modules.flatMap(({ name }) => {
      const directory = join(whole.local.places.nodes, node, 'root', 'opt', name);
      const count = commands.filter((words) => /python3?$/.test(words[0] ?? '') && words.includes('http.server') && words.includes(directory)).length;
      return count > 1 ? [`${name} runs ${count} times on ${node}`] : [];
    }),
  );
}

async function queuesOf({ whole }: Watched): Promise<Observed['queued']> {
  const url = new URL(whole.managementUrl);
  const authorization = `Basic ${Buffer.from(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`).toString('base64')}`;
  url.username = '';
  url.password = '';
  const vhost = new URL(whole.amqpUrl).pathname.slice(1);
  const response = await fetch(new URL(`/api/queues/${vhost}?columns=name,messages`, url), {
    headers: { authorization },
    signal: AbortSignal.timeout(10_000),
  });
  if (!response.ok) throw new Error(`the management API answered ${response.status}`);
  const queues = (await response.json()) as Array<{ name: string; messages?: number }>;
  // Beats flow on while everything is at rest.
  return queues.filter(({ name }) => !name.includes('beat')).map(({ name, messages }) => ({ queue: name, messages: messages ?? 0 }));
}
