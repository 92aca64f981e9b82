/** What goes between the builder and the process that parses for it. */

export interface Request {
  readonly parser: 'javascript' | 'rust';
  readonly root: string;
  /** `raw` in base64: a path need not be UTF-8. */
  readonly files: readonly { path: string; raw: string }[];
}

interface Place {
  readonly line: number;
  readonly reason: string;
}

/** Of one file. */
export interface Outcome<Use> {
  readonly uses: readonly Use[];
  readonly computed: readonly Place[];
  /** Why the file does not parse; what was found then is not all. */
  readonly broken: Place | null;
}

export type Parse<Use> = (path: string, bytes: Buffer) => Outcome<Use>;
