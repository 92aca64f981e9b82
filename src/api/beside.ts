/** The neighbours of all modules in the graph, for a status that is read every second: worked out once for each graph that there is. */
import type { Db } from '../inventory';
import { type AllNeighbours, allNeighbours, graphPrint, type Neighbours } from '../inventory/asking';

/** Of each store what was worked out last, or is just now. */
const known = new WeakMap<Db, Promise<AllNeighbours>>();

export async function neighboursOfAll(db: Db): Promise<ReadonlyMap<string, Neighbours>> {
  const print = await graphPrint(db);
  // What another reading could not work out is tried by this one.
  const before = await known.get(db)?.catch(() => null);
  if (before?.print === print) return before.of;
  const reading = allNeighbours(db);
  known.set(db, reading);
  return (await reading).of;
}
