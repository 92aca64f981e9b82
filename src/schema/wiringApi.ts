import { z } from 'zod';
import { count, maybe, type Read } from './answers';
import { instant, name } from './primitives';

/** What the HTTP API answers about claims, requirements and what providers make. */

/** What placements claim, offer others and are bound to. */
export const wiring = z.strictObject({
  claims: z.array(z.strictObject({ module: name, node: name, resource: z.string(), scope: z.string() })),
  offers: z.array(z.strictObject({ module: name, node: name, name, scope: z.string() })),
  bindings: z.array(
    z.strictObject({
      module: name,
      node: name,
      name,
      wants: name,
      provider: name,
      providerNode: name,
      chosenBy: maybe(z.string()),
      /** Of an instantiation; null: presence is enough. */
      instance: maybe(name),
      isMade: z.boolean(),
    }),
  ),
});

/** What a provider makes for a consumer. */
export const instanceRow = z.strictObject({
  name,
  wants: name,
  provider: name,
  providerNode: name,
  consumer: name,
  binding: name,
  nodes: z.array(name),
  parameters: z.record(z.string(), z.string()),
  createdAt: instant,
  /** null: the provider's node has not reported it yet. */
  madeAt: maybe(instant),
  /** False: a change of what it is made from is outstanding. */
  isMade: z.boolean(),
  secrets: z.array(
    z.strictObject({
      name: z.string(),
      version: count,
      madeAt: instant,
      holders: z.array(z.strictObject({ node: name, version: count, isApplied: z.boolean() })),
    }),
  ),
});

export const instanceList = z.strictObject({ instances: z.array(instanceRow) });

export type Wiring = Read<z.infer<typeof wiring>>;
export type InstanceRow = Read<z.infer<typeof instanceRow>>;
export type InstanceList = Read<z.infer<typeof instanceList>>;
