import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { type RustUse, rustParser } from '../../src/imports/parsing/rust';
import type { Parse } from '../../src/imports/parsing/types';
import { readRust } from '../../src/imports/rust';
import { sourceTree } from '../../src/imports/tree';
import type { LanguageFindings } from '../../src/imports/types';
import { type Files, programs, removeRepositories, repository } from './repository';

afterAll(removeRepositories);

async function read(files: Files): Promise<LanguageFindings> {
  const { signal } = new AbortController();
  return readRust(await sourceTree(repository(files), signal), { signal, cache: programs });
}

/** The names that the files import, sorted; `~` marks those of tests. */
async function names(files: Files): Promise<string[]> {
  const { imports } = await read(files);
  return [...new Set(imports.map(({ name, test }) => (test ? `~${name}` : name)))].sort();
}

const cargo = (dependencies: string, more = 'edition = "2021"'): string =>
  `[package]\nname = "app"\nversion = "0.1.0"\n${more}\n[dependencies]\n${dependencies}`;

const letters = [...'abcdefgh'].map((letter) => `${letter} = "1"`).join('\n');
const inApp = (source: string): Files => ({ 'Cargo.toml': cargo(`${letters}\ncore-types = "1"\ncore = "1"`), 'src/lib.rs': source });

describe('what imports', () => {
  test.each<[string, string[]]>([
    ['use a; use ::b; pub use c::d; pub(crate) use e::{f, g as h}; use core_types::{self, X};', ['a', 'b', 'c', 'core_types', 'e']],
    ['use {a::x, b, c::{d::*, e}}; use ::{f::x, g};', ['a', 'b', 'c', 'f', 'g']],
    ['use r#a::x; use b as other; use c::*; use d::{x as _, *};', ['a', 'b', 'c', 'd']],
    ['extern crate a; #[macro_use] extern crate b as other; extern crate core_types;', ['a', 'b', 'core_types']],
    ['fn x() -> a::B<c::D> { let e: e::F = ::f::g(); h::i::<b::J>() }', ['a', 'b', 'c', 'e', 'f', 'h']],
    [
      'impl<T: a::A> b::B for X where T: c::C<Item = d::D> { type E = <T as e::E>::F; const G: [f::F; g::N] = []; }',
      ['a', 'b', 'c', 'd', 'e', 'f', 'g'],
    ],
    [
      'fn x(y: Y) { match y { a::A => {}, b::B(c) => {}, d::D { .. } => {}, e::E..=f::F => {} } if let g::G(_) = y {} }',
      ['a', 'b', 'd', 'e', 'f', 'g'],
    ],
    ['#[derive(a::A, Clone)] struct X; #[b::b] fn y() {} #[cfg_attr(unix, c(d::D))] mod z {} #![e::e]', ['a', 'b', 'd', 'e']],
    ['a::mac! {} fn x() { println!("{}", b::y(c::Z)); vec![d::D; 2]; m!(::e::f, x::f::g, Vec<g::G>) }', ['a', 'b', 'c', 'd', 'e', 'g']],
    ['macro_rules! m { ($x:expr) => { $crate::a::x(b::c!($x)); crate::d::x(); } }', ['b']],
    ['#[cfg(windows)] use a::x; #[cfg(feature = "y")] mod z { pub use b::*; } fn f() { use c::d; }', ['a', 'b', 'c']],
    ['use a::a; fn f() { a::b() } use b::x::b;', ['a', 'b']],
    ['mod inner { use a::x; mod deeper { fn f() { b::x() } } }', ['a', 'b']],
    ['use core::fmt; use std::io; use alloc::vec; extern crate proc_macro;', ['core']],
    ['\uFEFFuse a::x;', ['a']],
  ])('%s', async (source, expected) => {
    expect(await names(inApp(source))).toEqual(expected);
  });

  test.each<[string, string]>([
    ['a comment', '// use a::x;\n/* use a::x; /* use b::x; */ a::y() */ fn f() {}'],
    ['a doc comment', '/// a::x and ```use a::x;```\n//! b::x\n/** c::x */ fn f() {} /*! d::x */'],
    ['a string', 'const X: &str = "use a::x; \\" a::y()"; const Y: &[u8] = b"a::x"; const Z: char = \':\';'],
    ['a raw string', 'const X: &str = r##"use a::x; "# a::y"##; const Y: &[u8] = br"a::x";'],
    ['text in a macro', 'fn f() { println!("a::x {}", /* b::x */ r"c::x") }'],
    ['a path within', 'use crate::a::x; use self::b; use super::c; fn f() { crate::d::x(); self::e::x(); Self::f::g(); }'],
    ['a later part of a path', 'use std::a::x; fn f(x: std::b::Y) { m!(std::c::d, $crate::e::f) }'],
    ['a local module', 'mod a { pub fn x() {} } mod b; mod core; use a::x; fn f() { a::x(); b::y(); core::z() }'],
    ['a name that another path gave', 'use crate::x::a; use std::b as c; fn f() { a::x(); c::y(); }'],
    ['a type of that name', 'struct a; enum b {} trait c {} type d = u8; fn f() { a::x(); b::y(); c::z(); d::w() }'],
    ['a module of the parent', 'mod a {} mod tests { use super::*; fn f() { a::x() } }'],
    ['a module of the block', 'fn f() { mod a {} { a::x() } }'],
    ['a variable or a field', 'fn f(a: u8) { let b = a; x.c; d(); Foo { e: 1 } }'],
    ['a label or a lifetime', "fn f<'a>(x: &'a u8) { 'b: loop { break 'b } }"],
  ])('is not %s', async (_, source) => {
    expect(await names(inApp(source))).toEqual([]);
  });

  test('is seen where a local module of that name is not in scope', async () => {
    expect(await names(inApp('mod outer { mod a {} } mod b { fn f() { a::x() } } fn g() { { mod c {} } c::x() }'))).toEqual(['a', 'c']);
  });

  test('is told with its first place in each file', async () => {
    const { imports } = await read(inApp('\nfn f() {}\nuse core_types::x;\nuse core_types::y;'));
    expect(imports).toEqual([{ name: 'core_types', candidates: ['core_types'], test: false, file: 'src/lib.rs', line: 3 }]);
  });

  test('is only what Cargo.toml names, by the name that it has there', async () => {
    const files = {
      'Cargo.toml': cargo('lib-core = "1"\nlib = "1"\nct = { package = "core-types", version = "1" }\nlib_v2 = { version = "1", optional = true }'),
      'src/main.rs': 'use lib_core::a; use ct::b; fn f() { lib::c(); lib_v2::d(); unknown::e(); core_types::f() }',
    };
    expect(await names(files)).toEqual(['core_types', 'lib', 'lib_core', 'lib_v2']);
    expect((await read(files)).imports.find(({ name }) => name === 'core_types')).toMatchObject({ line: 1 });
  });

  test('is a library that is not called as its package is', async () => {
    const files = {
      'Cargo.toml': cargo('core-types = "1"'),
      'src/lib.rs': 'use coretypes::A; use helper::x; mod helper; use deeper::y; use Enum::*;',
      'src/deeper.rs': '',
    };
    expect(await names(files)).toEqual(['coretypes']);
  });

  test('is of no library where each that Cargo.toml names is called', async () => {
    const files = { 'Cargo.toml': cargo('core-types = "1"'), 'src/lib.rs': 'use core_types::*; use command::A;' };
    expect(await names(files)).toEqual(['core_types']);
  });

  test('is nothing of the package itself', async () => {
    const files = { 'Cargo.toml': cargo('a = "1"'), 'src/lib.rs': '', 'src/main.rs': 'use app::x; extern crate app;', 'tests/t.rs': 'use app::y;' };
    expect(await names(files)).toEqual([]);
  });

  test('begins at the root of the crate before 2018', async () => {
    const files = { 'Cargo.toml': cargo('a = "1"\nb = "1"', ''), 'src/lib.rs': 'mod a; mod x;', 'src/x.rs': 'use a::y; use b::z;' };
    expect(await names(files)).toEqual(['b']);
  });

  test('is found in files of any name, not through links and not in what is carried along', async () => {
    const outside = repository({ 'out.rs': 'use d::x;' });
    const files: Files = {
      ...inApp(''),
      'src/with space.rs': 'use a::x;',
      'src/é.rs': 'use b::x;',
      'latin1:src/caf\xe9.rs': 'use c::x;',
      'src/link.rs': { link: `${outside}/out.rs` },
      'target/x.rs': 'use e::x;',
      'vendor/x/src/lib.rs': 'use f::x;',
    };
    const { imports } = await read(files);
    expect(imports.map(({ name, file }) => `${name} ${file}`).sort()).toEqual(['a src/with space.rs', 'b src/é.rs', 'c src/caf\\xe9.rs']);
  });
});

describe('an import of tests', () => {
  test('is one in what only tests compile', async () => {
    const source = `
      #[cfg(test)] use a::x;
      #[cfg(all(test, unix))] mod m { use b::x; }
      #[cfg(any(test, feature = "y"))] use c::x;
      #[cfg(not(test))] use d::x;
      #[test] fn t() { e::x() }
      #[tokio::test] async fn u() { f::x!() }
      #[cfg_attr(test, g)] fn v() { h::x() }`;
    expect(await names(inApp(source))).toEqual(['c', 'd', 'h', '~a', '~b', '~e', '~f']);
  });

  test('is one in a file that #[cfg(test)] names, and below', async () => {
    const files = {
      ...inApp('#[cfg(test)] mod checks; #[cfg(test)] #[path = "odd/place.rs"] mod other; mod plain;'),
      'src/checks.rs': 'use a::x; mod more;',
      'src/checks/more.rs': 'use b::x;',
      'src/odd/place.rs': 'use c::x;',
      'src/plain.rs': '#[cfg(test)] mod t;',
      'src/plain/t/mod.rs': 'use d::x;',
      'src/checksum.rs': 'use e::x;',
    };
    expect(await names(files)).toEqual(['e', '~a', '~b', '~c', '~d']);
  });

  test('is one below tests, benches and examples of its package, and by a name that is for tests only', async () => {
    const files = {
      'Cargo.toml': '[workspace]\nmembers = ["crates/*"]',
      'crates/x/Cargo.toml': `${cargo('a = "1"\nb = "1"\nc = "1"\nd = "1"')}\n[dev-dependencies]\ne = "1"\n[build-dependencies]\nf = "1"\n[[test]]\nname = "t"\npath = "odd.rs"\n`,
      'crates/x/src/lib.rs': 'use a::x; use e::x;',
      'crates/x/tests/common/mod.rs': 'use a::x; use b::x;',
      'crates/x/benches/b.rs': 'use c::x;',
      'crates/x/examples/e.rs': 'use d::x;',
      'crates/x/odd.rs': 'use d::y;',
      'crates/x/build.rs': 'fn main() { f::x() }',
    };
    expect(await names(files)).toEqual(['a', 'f', '~a', '~b', '~c', '~d', '~e']);
  });
});

describe('what lies in the repository', () => {
  test('is each member of the workspace', async () => {
    const files = {
      'Cargo.toml': '[workspace]\nmembers = ["a", "b-c"]',
      'a/Cargo.toml': '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nb-c = { path = "../b-c" }\nb = "1"',
      'a/src/lib.rs': 'use b_c::x; use b::y;',
      'b-c/Cargo.toml': '[package]\nname = "b-c"\nversion = "0.1.0"\n',
      'b-c/src/lib.rs': '',
    };
    const { imports, notes } = await read(files);
    expect(imports.map(({ name }) => name)).toEqual(['b']);
    expect(notes).toEqual([]);
  });

  test.each<[string, Files, string]>([
    ['by path', { 'Cargo.toml': `${cargo('core-types = { path = "libs/ct" }')}\n[workspace]\nexclude = ["libs"]` }, 'libs/ct'],
    [
      'by a patch',
      { 'Cargo.toml': `${cargo('core-types = "1"')}\n[patch.crates-io]\ncore-types = { path = "libs/ct" }\n[workspace]\nexclude = ["libs"]` },
      'libs/ct',
    ],
    ['in vendor', { 'Cargo.toml': cargo('core-types = "1"'), 'vendor/core-types/Cargo.toml': '[package]\nname = "core-types"' }, 'vendor/core-types'],
  ])('is a copy %s, which is said', async (_, files, directory) => {
    const copy = { 'libs/ct/Cargo.toml': '[package]\nname = "core-types"\nversion = "0.1.0"\n', 'libs/ct/src/lib.rs': '' };
    const { imports, notes } = await read({ ...(directory === 'libs/ct' ? copy : {}), ...files, 'src/lib.rs': 'use core_types::x;' });
    expect(imports).toEqual([]);
    expect(notes).toEqual([`core_types is the copy in ${directory}: no other module is used for it`]);
  });

  test('is not what a path outside of it names', async () => {
    expect(await names({ 'Cargo.toml': cargo('core-types = { path = "../core-types" }'), 'src/lib.rs': 'use core_types::x;' })).toEqual([
      'core_types',
    ]);
  });
});

describe('what cannot be known', () => {
  test('is all that a file imports which does not parse; what is seen of it is said', async () => {
    const { imports, unknown } = await read({ ...inApp('use a::x;\nfn f( {\nuse b::y;'), 'src/c.rs': 'use c::x;' });
    expect(imports.map(({ name }) => name).sort()).toEqual(['a', 'b', 'c']);
    expect(unknown).toEqual([
      { kind: 'unparsed', file: 'src/lib.rs', line: expect.any(Number), reason: 'what stands here is no Rust that is known' },
    ]);
  });

  test('is what a Cargo.toml names that cargo does not read, unless it is of tests', async () => {
    const { imports, unknown } = await read({ 'Cargo.toml': '[package]\nname = "a', 'src/lib.rs': 'use b::x;', 'tests/x/Cargo.toml': 'x' });
    expect(imports).toEqual([]);
    expect(unknown).toEqual([{ kind: 'unparsed', file: 'Cargo.toml', line: 2, reason: expect.stringMatching(/^cargo does not read it: .*string/) }]);
  });

  test('is said without the place of the checkout', async () => {
    const { unknown } = await read({ 'in/Cargo.toml': '[package]\nname = "a"\nversion = "0.1.0"\n' });
    expect(unknown).toEqual([
      {
        kind: 'unparsed',
        file: 'in/Cargo.toml',
        line: 1,
        reason: expect.stringMatching(/^cargo does not read it: .*must be present$/),
      },
    ]);
    const missing = await read({ 'in/Cargo.toml': '[workspace]\nmembers = ["gone"]\n' });
    expect(missing.unknown[0]?.reason).toMatch(/^cargo does not read it: .*`in\/gone\/Cargo.toml`.*No such file/);
    expect(missing.unknown[0]?.reason).not.toMatch(/\/tmp|tally-/);
  });

  test('is a file that is nested deeper than the stack', async () => {
    const { imports, unknown } = await read({ ...inApp(`fn f() { ${'('.repeat(100_000)}1${')'.repeat(100_000)} }`), 'src/z.rs': 'use a::x;' });
    expect(imports.map(({ name }) => name)).toEqual(['a']);
    expect(unknown).toEqual([{ kind: 'unparsed', file: 'src/lib.rs', line: 1, reason: expect.any(String) }]);
  });

  test('is no verdict where there is no cargo', async () => {
    const { PATH } = process.env;
    const { signal } = new AbortController();
    const tree = await sourceTree(repository(inApp('use a::x;')), signal);
    process.env.PATH = '/nonexistent';
    try {
      await expect(readRust(tree, { signal, cache: programs })).rejects.toThrow(/there is no cargo here: install Rust/);
    } finally {
      process.env.PATH = PATH;
    }
  });
});

test('names are declared by library and by package, with their lines', async () => {
  const files = {
    'Cargo.toml': '[workspace]\nmembers = ["a", "b", "c"]',
    'a/Cargo.toml': '[package]\nname = "core-types"\nversion = "0.1.0"\n',
    'a/src/lib.rs': '',
    'b/Cargo.toml': '[package]\nversion = "0.1.0"\nname = "other"\n[lib]\nname = "named"\n',
    'b/src/lib.rs': '',
    'c/Cargo.toml': '[package]\nname = "program"\nversion = "0.1.0"\n',
    'c/src/main.rs': '',
  };
  const { declared } = await read(files);
  expect(declared).toEqual([
    { name: 'core_types', directory: 'a', file: 'a/Cargo.toml', line: 2 },
    { name: 'named', directory: 'b', file: 'b/Cargo.toml', line: 5 },
    { name: 'other', directory: 'b', file: 'b/Cargo.toml', line: 3 },
  ]);
});

test('nothing is written into the tree, and nothing in it is heeded', async () => {
  const root = repository({
    ...inApp('use a::x;'),
    '.cargo/config.toml': '[build]\nrustc = "/nonexistent"',
    'rust-toolchain.toml': '[toolchain]\nchannel = "1.0.0"',
  });
  const { signal } = new AbortController();
  const tree = await sourceTree(root, signal);
  expect((await readRust(tree, { signal, cache: programs })).imports.map(({ name }) => name)).toEqual(['a']);
  expect(execFileSync('git', ['-C', root, 'status', '--porcelain', '--ignored'], { encoding: 'utf8' }).replace(/^A .*\n/gm, '')).toBe('');
});

const noise = fc.oneof(
  fc.constantFrom(
    '// use x1::a;',
    '/* x2::a /* x3::b */ use x4::c; */',
    '/// x5::a\nfn f() {}',
    'const A: &str = "x6::a \\" x7::b";',
    'const B: &str = r#"x8::a " x9::b"#;',
    'const C: char = \'"\'; const D: &[u8] = b"x10::a";',
    "fn g<'a>(x: &'a str) -> char { '\\'' }",
    'fn h() { println!("x11::a {}", 1); crate::x12::b() }',
    'mod m { pub fn x13() {} }',
    'mod o { mod lib { pub struct P; } fn z() -> lib::P { lib::P } }',
    'use crate::{x14, m::{self as n}};',
  ),
  fc.string().map((text) => `/* ${text.replace(/\*\/|\/\*/g, '').replace(/[*/]$/, '')} */`),
  fc.string().map((text) => `const S: &str = r###"${text.replaceAll('"', '')}"###;`),
);

const importing = fc
  .constantFrom('p', 'p_q', 'lib', 'lib_core')
  .chain((name) =>
    fc
      .constantFrom(
        `use ${name}::a;`,
        `use ${name}::{b, c::*};`,
        `use ${name}::${name};`,
        `extern crate ${name};`,
        `fn i() -> ${name}::A { 1 }`,
        `#[derive(${name}::B)] struct J;`,
        `fn k() { vec![${name}::c()]; }`,
      )
      .map((text) => ({ name, text })),
  );

describe('whatever stands around them', () => {
  let parse: Parse<RustUse>;

  beforeAll(async () => {
    parse = await rustParser();
  });

  test('exactly the paths of other crates are found', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(noise, importing)), (parts) => {
        const source = parts.map((part) => (typeof part === 'string' ? part : part.text)).join('\n');
        const expected = new Set(parts.flatMap((part) => (typeof part === 'string' ? [] : [part.name])));
        const { uses, broken } = parse('a.rs', Buffer.from(source));
        expect(broken).toBeNull();
        expect(new Set(uses.filter(({ kind }) => kind !== 'mod').map(({ name }) => name))).toEqual(expected);
      }),
    );
  });
});
