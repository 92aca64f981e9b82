/** Whether the demo was played in this mesh: said in the store, so that it goes with the data and is played once. */
import type { Db } from '../inventory/db';

export interface DemoMarker {
  readonly nodes: readonly string[];
  /** Until it makes its first commit it can begin again; what was interrupted after that is not played twice. */
  readonly state: 'prepared' | 'playing' | 'played';
}

export async function readMarker(db: Db): Promise<DemoMarker | null> {
  const [row] = await db.query<{ value: DemoMarker }>("select value from setting where key = 'demo'");
  return row?.value ?? null;
}

export async function writeMarker(db: Db, marker: DemoMarker): Promise<void> {
  await db.query("insert into setting (key, value) values ('demo', $1) on conflict (key) do update set value = excluded.value", [
    JSON.stringify(marker),
  ]);
}
