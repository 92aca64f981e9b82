import type { Reading, SourceTree } from '../../imports/types';
import type { Mount } from '../sandbox';

/** Where a language's inputs are to be laid. */
export interface Place {
  /** The directory that becomes `TALLY_INPUTS`, and that name of it. */
  readonly directory: string;
  readonly inside: string;
  /** The commands' own `/tmp`, for what a tool must be able to write beside the inputs. */
  readonly tmp: string;
  readonly tree: SourceTree;
  /** What a language's own tool is run with where the builder asks it something. */
  readonly reading: Reading;
}

/** What one language needs besides. */
export interface LaidLanguage {
  readonly env?: Readonly<Record<string, string>>;
  readonly mounts?: readonly Mount[];
  /** A command of ours that brings, with the network, what the inputs need of others. */
  readonly complete?: string | null;
}
