import type { PackageName } from '../schema/messages';

/**
 * Names that a tool said it did not find, read from its output: whether one of them is of the mesh, only the control plane knows.
 * What a tool words otherwise goes unnoticed, and the build fails with what the tool said.
 */
export interface MissingNames {
  /** Output of a command, cut anywhere. */
  write(chunk: Buffer): void;
  /** Each spread into the names of packages that it could be of, the most specific first. */
  found(): PackageName[];
}

type Language = PackageName['language'];

const NAMES_MOST = 100;
const NAME_MOST = 512;
const LINE_MOST = 4_000;

const SAID: ReadonlyArray<readonly [Language, RegExp]> = [
  ['go', /no required module provides package ([^\s;:]+)/],
  ['go', /cannot find (?:module|package) (?:providing package )?"?([^\s;:"]+)/],
  ['go', /package ([^\s;:]+) is not in (?:std|GOROOT)/],
  ['go', /\bgo: ([^\s@]+)@[^\s:]+: /],
  ['go', /: ([\w.~/-]+)@v[^\s:]+: module lookup disabled/],
  ['npm', /(?:Cannot find (?:module|package)|Cannot find type definition file for|Can't resolve) ['"]([^'"]+)['"]/],
  ['npm', /Could not resolve "([^"]+)"/],
  ['npm', /['"](@?[^'"\s@]+)@[^'"]*['"] is not in (?:this|the npm) registry/],
  ['npm', /No matching version found for (@?[^\s@]+)@/],
  ['python', /No module named '?([\w.]+)'?/],
  ['python', /No matching distribution found for ([\w.-]+)/],
  ['rust', /no matching package named `([^`]+)`/],
  ['rust', /failed to select a version for the requirement `([\w-]+)/],
  ['rust', /unresolved import `([^`]+)`/],
  ['rust', /can't find crate for `([^`]+)`/],
  ['rust', /use of (?:undeclared crate or module|unresolved module or unlinked crate) `([^`]+)`/],
];

const COLOUR = new RegExp(`${'\u001b'}\\[[0-9;]*m`, 'g');

/** @param known what was laid for the build: a part of it that is not there is no missing module. */
export function createMissingNames(known: readonly PackageName[]): MissingNames {
  const isKnown = new Set(known.map(({ language, name }) => `${language} ${name}`));
  const decoder = new TextDecoder('utf-8');
  const found = new Map<string, PackageName>();
  let partial = '';

  function take(line: string): void {
    const plain = line.slice(0, LINE_MOST).replace(COLOUR, '');
    for (const [language, said] of SAID) {
      const name = said.exec(plain)?.[1];
      if (name === undefined) continue;
      const candidates = candidatesOf(language, name);
      if (candidates.some((candidate) => isKnown.has(`${language} ${candidate}`))) continue;
      for (const candidate of candidates) {
        if (found.size < NAMES_MOST && candidate !== '' && candidate.length <= NAME_MOST)
          found.set(`${language} ${candidate}`, { language, name: candidate });
      }
    }
  }

  return {
    write(chunk) {
      const lines = (partial + decoder.decode(chunk, { stream: true })).split('\n');
      partial = (lines.pop() ?? '').slice(0, LINE_MOST);
      for (const line of lines) take(line);
    },
    found() {
      take(partial);
      partial = '';
      return [...found.values()];
    },
  };
}

function candidatesOf(language: Language, name: string): string[] {
  switch (language) {
    case 'go': {
      const parts = name.split('/');
      // What a `vN` follows is another major version: another module.
      return parts
        .map((_, i) => parts.slice(0, parts.length - i))
        .flatMap((some) => (/^v[2-9]\d*$|^v1\d+$/.test(parts[some.length] ?? '') ? [] : [some.join('/')]));
    }
    case 'npm': {
      if (/^[./]|^node:|^#/.test(name)) return [];
      const parts = name.split('/');
      return [parts.slice(0, name.startsWith('@') ? 2 : 1).join('/')];
    }
    case 'python': {
      const parts = name.replaceAll('-', '_').split('.');
      return parts.map((_, i) => parts.slice(0, parts.length - i).join('.'));
    }
    case 'rust':
      return [(name.split('::')[0] ?? '').replaceAll('-', '_')].filter((crate) => !['', 'crate', 'self', 'super'].includes(crate));
  }
}
