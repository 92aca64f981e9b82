/** What the answers of the API are written with. */
import { z } from 'zod';

export const count = z.number().int().nonnegative();

export const maybe = <T extends z.ZodType>(schema: T): z.ZodNullable<T> => z.nullable(schema);

/** Whoever answers takes it from rows that nobody may change, and whoever reads changes nothing. */
export type Read<T> = T extends readonly (infer Item)[] ? readonly Read<Item>[] : T extends object ? { readonly [Key in keyof T]: Read<T[Key]> } : T;
