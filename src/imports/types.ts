import type { Language, UnknownImport } from '../schema/messages';

/** What the four readers of languages are given, and what each of them says. */

export interface SourceFile {
  /** From the root of the tree, with `/`. For people: a byte that is no UTF-8 stands as `\xNN`, so it may not open the file. */
  readonly path: string;
  /** The same as the file system has it. */
  readonly raw: Buffer;
}

/** The files that git tracks in a checkout, by the bytes of their paths. No links, no submodules: neither is the module's code. */
export interface SourceTree {
  readonly root: string;
  readonly files: readonly SourceFile[];
  /** Without what others wrote and the repository only carries along, as in `vendor` and `node_modules`. */
  readonly own: readonly SourceFile[];
  /** @returns null for a file of more bytes than that, and for what is no file any more. */
  read(file: SourceFile, mostBytes: number): Promise<Buffer | null>;
}

/** A name by which others could import what lies in a directory of the tree. Whether it is exported, `bindings` says. */
export interface DeclaredName {
  readonly name: string;
  /** Of the go.mod, package.json, pyproject.toml or Cargo.toml, from the root; the root itself is `.`. */
  readonly directory: string;
  readonly file: string;
  readonly line: number;
}

/** An import of something that does not lie in the tree. May be said many times: the first place counts. */
export interface FoundImport {
  readonly name: string;
  /** The most specific first; at least one. */
  readonly candidates: readonly string[];
  readonly test: boolean;
  readonly file: string;
  readonly line: number;
}

export interface LanguageFindings {
  readonly declared: readonly DeclaredName[];
  readonly imports: readonly FoundImport[];
  readonly unknown: readonly UnknownImport[];
  /** For the author of the module, a line each. */
  readonly notes: readonly string[];
}

export interface Reading {
  readonly signal: AbortSignal;
  /** Where programs of ours are kept compiled; is made when it is not there. */
  readonly cache: string;
}

/** Runs nothing of the tree. Throws EnvironmentError for what is not the module's fault. */
export type ReadLanguage = (tree: SourceTree, reading: Reading) => Promise<LanguageFindings>;

export interface Reader {
  readonly language: Language;
  readonly read: ReadLanguage;
}

export const nothingFound: LanguageFindings = { declared: [], imports: [], unknown: [], notes: [] };
