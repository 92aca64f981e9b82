/**
 * From what is placed on one node, what it should hold: ordered resources, references to artifacts and facts filled in.
 * Pure: the same placements always give the same digest, so nothing is sent that would change nothing.
 */
import type { ArtifactRef, DeclaredResource } from '../schema/declaration';
import type { Manifest, ManifestResource } from '../schema/manifest';

export interface DerivedFrom {
  readonly module: string;
  /** What made it, for words: the first digits of the commit. */
  readonly commit: string;
  readonly manifest: Manifest;
  /** By the names that the manifest gives them. */
  readonly artifacts: Readonly<Record<string, ArtifactRef>>;
}

export interface DeriveInput {
  readonly node: {
    readonly name: string;
    readonly facts: Readonly<Record<string, string>>;
    /** What its host said it reads; null before its first beat: then it is taken to read everything. */
    readonly reads: { readonly versions: readonly number[]; readonly shapes: readonly string[] } | null;
  };
  readonly version: number;
  readonly modules: readonly DerivedFrom[];
}

export type Derived =
  | {
      readonly kind: 'derived';
      readonly digest: string;
      readonly resources: readonly DeclaredResource[];
      /** Per module: the digest of its own resources, and how many there are. */
      readonly modules: Readonly<Record<string, { readonly digest: string; readonly resources: number }>>;
    }
  /** One line: module, resource and what is missing; and the modules whose fault it is. */
  | { readonly kind: 'notWorkedOut'; readonly reason: string; readonly modules: readonly string[] };

/** @param digest sha256 of the canonical JSON (RFC 8785) of a value. */
export declare function deriveDeclaration(input: DeriveInput, digest: (value: unknown) => string): Derived;
