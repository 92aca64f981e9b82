/** Edges of a graph made by hand: `meshboard > core main.go:3`, with `?` after what only tests import. */
import type { Db } from '../../src/inventory';
import type { EdgeDetail } from '../../src/inventory/asking';
import { inStep } from './meshes';

export function edges(...lines: readonly string[]): EdgeDetail[] {
  return lines.map((text) => {
    const [, module = '', input = '', test = '', file = '', line = '1'] = /^(\S+) > ([^\s?]+)(\??)(?: (.+):(\d+))?$/.exec(text) ?? [];
    const isTest = test === '?';
    const place = { file: file === '' ? `${input}.go` : file, line: Number(line) };
    return {
      module,
      input,
      isTest,
      names: 1,
      evidence: [{ language: 'go', name: `example.com/${input}`, artifact: input, ...place, isTest }],
    };
  });
}

/** As the graph's own writer would have left them; an edge may name another import than its module's. */
export async function addEdges(db: Db, ...lines: readonly string[]): Promise<void> {
  for (const line of lines) {
    const [, text = '', name] = /^(.*?:\d+)(?: (\S+))?$/.exec(line) ?? [];
    const [edge] = edges(text);
    const [place] = edge?.evidence ?? [];
    if (edge === undefined || place === undefined) throw new Error(`"${line}" is no edge`);
    await db.query(
      `insert into build_edge (module, input, artifact, language, name, is_test, file, line) values ($1, $2, $3, 'go', $4, $5, $6, $7)`,
      [edge.module, edge.input, place.artifact, name ?? place.name, edge.isTest, place.file, place.line],
    );
  }
}

/** Six modules in step, five of them in a graph. */
export async function aGraph(db: Db): Promise<void> {
  for (const module of ['core', 'board-types', 'kiosk', 'meshboard', 'probe', 'site']) await inStep(db, module);
  await addEdges(
    db,
    'board-types > core types.go:3',
    'kiosk > board-types web/main.ts:1',
    'meshboard > board-types board/board.go:7',
    'meshboard > core main.go:12',
    'probe > core? probe_test.go:5',
  );
  await db.query('update module set compared_version = facts_version');
}

/** A valid inspection of the module's head: the store makes edges of what it says. */
export async function inspected(db: Db, module: string, said: { exports?: object[]; imports?: object[]; unknown?: object[] }): Promise<void> {
  await db.query(
    `insert into inspection (module, commit, request_id, outcome, manifest, exports, imports, unknown, answered_at)
     select name, head_commit, 'inspect-' || name, 'valid', '{}', $2, $3, $4, now() from module where name = $1`,
    [module, JSON.stringify(said.exports ?? []), JSON.stringify(said.imports ?? []), JSON.stringify(said.unknown ?? [])],
  );
}
