/** What the demo knows of the examples: what their services answer, and the commits that it makes. */

export const NODES = ['alpha', 'beta', 'gamma'] as const;
/** The quick ones first: the first build of a Go module compiles its standard library, and there is one builder. */
export const MODULES = ['site', 'core', 'greeter', 'kiosk', 'board-types', 'meshboard'] as const;
/** What others build on; of these nothing is placed on a node. */
export const SHARED: readonly string[] = ['core', 'board-types'];
export const PLACED = MODULES.filter((module) => !SHARED.includes(module));
/** In the order in which a change of core reaches them. */
export const ON_CORE = ['board-types', 'meshboard', 'kiosk', 'greeter'] as const;

/** Modules that answer, at the port that a node's fact `<module>.port` says. */
export const SERVICES = [
  { module: 'meshboard', path: '/', first: 'meshboard 1 on' },
  { module: 'kiosk', path: '/screen.json', first: 'Open until six' },
  { module: 'greeter', path: '/', first: 'Hello from' },
] as const;

export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

export interface Change extends Edit {
  readonly module: string;
  readonly message: string;
  /** What the running service answers at `path` before and once it runs this. */
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

const board = { module: 'meshboard', file: 'board/board.go', path: '/' } as const;

export const CHANGES = {
  first: {
    ...board,
    message: 'version 2',
    find: 'const Version = "1"',
    put: 'const Version = "2"',
    before: 'meshboard 1 on',
    after: 'meshboard 2 on',
  },
  broken: {
    ...board,
    message: 'say it shorter',
    find: '"meshboard %s on %s"',
    put: '"board %s at %s"',
    before: 'meshboard 2 on',
    after: 'board 2 at',
  },
  mended: {
    ...board,
    message: 'say it as the tests expect',
    find: '"board %s at %s"',
    put: '"meshboard %s, mended, on %s"',
    before: 'meshboard 2 on',
    after: 'meshboard 2, mended, on',
  },
  whileOff: {
    module: 'greeter',
    message: 'a warmer word',
    file: 'greeter/__init__.py',
    find: 'WORD = "Hello"',
    put: 'WORD = "Welcome"',
    path: '/',
    before: 'Hello from',
    after: 'Welcome from',
  },
  whileLost: {
    module: 'kiosk',
    message: 'open longer',
    file: 'src/app/screen.ts',
    find: 'Open until six',
    put: 'Open until eight',
    path: '/screen.json',
    before: 'Open until six',
    after: 'Open until eight',
  },
} as const satisfies Record<string, Change>;

const motto = { find: 'open to all', put: 'all are welcome' } as const;

/** Commits to core, and how far each of them goes. */
export const CORE_CHANGES = {
  motto: {
    message: 'another motto',
    edits: ['go/motto.go', 'npm/index.js', 'python/example_core/__init__.py'].map((file) => ({ file, ...motto })),
    before: motto.find,
    after: motto.put,
  },
  readme: { message: 'say where it is used', edits: [{ file: 'README.md', find: 'The motto', put: 'The one motto' }] },
  comment: { message: 'a better comment', edits: [{ file: 'go/motto.go', find: '// Motto is shown', put: '// Motto is said' }] },
} as const satisfies Record<string, { message: string; edits: readonly Edit[]; before?: string; after?: string }>;
