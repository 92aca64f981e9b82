import { parseManifest } from '../../src/schema/manifestFile';

const fit = `module: meshboard
declare: auto
artifacts:
  meshboard: { archive: out/ }
build:
  fetch: go mod download
  run: go build -trimpath -o out/meshboard ./cmd/meshboard
  test: go test ./...
  timeout: 10m
requires:
  - presence: name-resolution
claims:
  - { resource: port/8080, scope: node }
resources:
  - archive: { path: /opt/meshboard, from: meshboard }
  - file: { path: /etc/meshboard.json, mode: "0644", content: '{"node":"\${node.name}"}' }
  - service:
      name: meshboard
      run: [/opt/meshboard/meshboard, --config, /etc/meshboard.json]
      ready: { http: "http://127.0.0.1:8080/healthz", within: 10s }
`;

function problemsOf(content: string | Buffer, module?: string) {
  const reading = parseManifest(content, module === undefined ? undefined : { module });
  if (reading.valid) throw new Error('the manifest was taken as valid');
  return reading.problems;
}

describe('a module.yaml', () => {
  test('as the design shows it is valid, and is handed on as its author wrote it', () => {
    const reading = parseManifest(fit, { module: 'meshboard' });
    if (!reading.valid) throw new Error(JSON.stringify(reading.problems));
    expect(reading.manifest.build.timeout).toBe(600_000);
    expect(reading.written).toMatchObject({ build: { timeout: '10m' } });
    expect(reading.notes).toEqual([]);
  });

  test('of one line is enough', () => {
    expect(parseManifest('module: a\n')).toMatchObject({ valid: true, notes: [] });
  });

  const base = 'module: a\nartifacts:\n  site: { archive: out/ }\n  tool: { file: dist/tool.js }\n';
  const table: Array<[what: string, text: string, line: number, key: string, message: RegExp]> = [
    ['an unknown key', 'module: a\nbiuld:\n  run: make\n', 2, 'biuld', /unknown key `biuld`: did you mean `build`\?/],
    ['an unknown key deeper', 'module: a\nbuild:\n  run: make\n  tests: make test\n', 4, 'build.tests', /did you mean `test`\?/],
    ['an unknown key that resembles nothing', 'module: a\nqqqqqqqqqq: 1\n', 2, 'qqqqqqqqqq', /known here: artifacts, build, claims/],
    ['an unknown shape', `${base}resources:\n  - servce: { name: a, run: [a] }\n`, 6, 'resources[0].servce', /did you mean `service`\?/],
    [
      'an unknown key of a shape',
      `${base}resources:\n  - service:\n      name: a\n      runn: [a]\n`,
      8,
      'resources[0].service.runn',
      /did you mean `run`\?/,
    ],
    [
      'two shapes in one resource',
      `${base}resources:\n  - directory: { path: /a }\n    file: { path: /b, content: x }\n`,
      6,
      'resources[0]',
      /exclude each other/,
    ],
    ['an unknown kind of artifact', 'module: a\nartifacts:\n  site:\n    archve: out/\n', 4, 'artifacts.site.archve', /did you mean `archive`\?/],
    ['a missing key', `${base}resources:\n  - archive: { path: /srv }\n`, 6, 'resources[0].archive.from', /`from` is missing/],
    ['no module', 'declare: auto\n', 1, 'module', /`module` is missing/],
    ['a number for text', 'module: a\nbuild:\n  env: { PORT: 8080 }\n', 3, 'build.env.PORT', /put it in quotes/],
    ['an unquoted mode', `${base}resources:\n  - file: { path: /a, mode: 0644, content: x }\n`, 6, 'resources[0].file.mode', /put it in quotes/],
    ['a list for a mapping', 'module: a\nbuild: [make]\n', 2, 'build', /expected a mapping, found a list/],
    ['a word of a set', 'module: a\ndeclare: atuo\n', 2, 'declare', /expected auto or ask: did you mean `auto`\?/],
    ['a duration', 'module: a\nbuild:\n  timeout: 10 minutes\n', 3, 'build.timeout', /as in 10m/],
    ['a bad module name', 'module: My_Module\n', 1, 'module', /lower-case/],
    ['another name than the mesh has', 'declare: ask\nmodule: b\n', 2, 'module', /says `b` and the mesh knows this repository as `a`/],
    [
      'an artifact that is not there',
      `${base}resources:\n  - archive: { path: /srv, from: sites }\n`,
      6,
      'resources[0].archive.from',
      /`sites` is not among `artifacts`: did you mean `site`\?/,
    ],
    ['an artifact of another kind', `${base}resources:\n  - archive: { path: /srv, from: tool }\n`, 6, 'resources[0].archive.from', /kind file/],
    [
      'an artifact named like a built-in',
      `${base}resources:\n  - archive: { path: /srv, from: constructor }\n`,
      6,
      'resources[0].archive.from',
      /not among/,
    ],
    [
      'the same target twice',
      `${base}resources:\n  - directory: { path: /srv/a }\n  - file: { path: /srv//b/../a/, content: x }\n`,
      7,
      'resources[1].file.path',
      /holds `\.\.`/,
    ],
    [
      'the same target after normalisation',
      `${base}resources:\n  - directory: { path: /srv/a }\n  - file: { path: /srv//a/, content: x }\n`,
      7,
      'resources[1].file.path',
      /same target/,
    ],
    [
      'the same service twice',
      `${base}resources:\n  - service: { name: s, run: [a] }\n  - service: { name: s, run: [b] }\n`,
      7,
      'resources[1].service.name',
      /same target `s`/,
    ],
    ['the root as a target', `${base}resources:\n  - directory: { path: / }\n`, 6, 'resources[0].directory.path', /root of the node/],
    ['a file without content', `${base}resources:\n  - file: { path: /a }\n`, 6, 'resources[0].file', /either `content` or `from`/],
    [
      'two ways to be ready',
      `${base}resources:\n  - service: { name: s, run: [a], ready: { tcp: "a:1", exec: [a] } }\n`,
      6,
      'resources[0].service.ready',
      /one of http, tcp, exec/,
    ],
    [
      'an unknown reference',
      `${base}resources:\n  - file: { path: /a, content: "\${nod.name}" }\n`,
      6,
      'resources[0].file.content',
      /unknown reference `\$\{nod\.name\}`: did you mean `node\.name`\?/,
    ],
    ['an open reference', `${base}resources:\n  - service: { name: s, run: [sh, "\${root"] }\n`, 6, 'resources[0].service.run[1]', /not closed/],
    ['an output outside the tree', 'module: a\nartifacts:\n  x: { archive: ../.. }\n', 3, 'artifacts.x.archive', /leaves the tree/],
    [
      'a secret in a file that others may read',
      'module: a\nprovides:\n  - instantiation: db\n    secrets: [password]\n    resources:\n      - file: { path: "/etc/${instance.name}", content: "${secret.password}" }\n',
      6,
      'provides[0].resources[0].file.content',
      /`\$\{secret\.password\}` is a secret: it may stand in the content of a file of mode "0600"/,
    ],
    [
      'what is made for each instance under one name',
      'module: a\nprovides:\n  - instantiation: db\n    resources:\n      - action: { name: make, run: [a], unless: [b] }\n',
      5,
      'provides[0].resources[0].action.name',
      /is the same for every instance/,
    ],
    [
      'a path out of any text of a consumer',
      'module: a\nprovides:\n  - instantiation: db\n    parameters: { at: { is: text } }\n    resources:\n      - file: { path: "/etc/${instance.name}/${with.at}", content: x }\n',
      6,
      'provides[0].resources[0].file.path',
      /`\$\{with\.at\}` is any text, which a consumer could make another path of: give the parameter `is: word`/,
    ],
    [
      'a default that is not taken',
      'module: a\nprovides:\n  - instantiation: db\n    parameters:\n      at: { default: /srv }\n',
      5,
      'provides[0].parameters.at.default',
      /the default is not what `is: word` takes: a word of at most 200/,
    ],
    [
      'a reference to a binding that is not required',
      'module: a\nrequires:\n  - { instantiation: postgres-database, as: db }\nresources:\n  - file: { path: /a, content: "${bind.bd.host}" }\n',
      5,
      'resources[0].file.content',
      /unknown reference `\$\{bind\.bd\.host\}`: did you mean `bind\.db\.host`\?/,
    ],
    [
      'a reference to a parameter that is not taken',
      'module: a\nprovides:\n  - instantiation: route\n    parameters: { port: {} }\n    gives: { at: "${with.prot}" }\n',
      5,
      'provides[0].gives.at',
      /did you mean `with\.port`\?/,
    ],
    [
      'two bindings of one name',
      'module: a\nrequires:\n  - { instantiation: db }\n  - { instantiation: queue, as: db }\n',
      4,
      'requires[1].as',
      /requires\[0\] is bound as `db` already/,
    ],
    ['a claim without form', 'module: a\nclaims:\n  - { resource: 8080, scope: node }\n', 3, 'claims[0].resource', /put it in quotes/],
    ['a claim of another form', 'module: a\nclaims:\n  - { resource: "8080", scope: node }\n', 3, 'claims[0].resource', /as in port\/8080/],
    ['a key twice', 'module: a\nbuild: {}\nbuild: {}\n', 3, '', /stands here twice/],
    ['an alias', 'module: &m a\nartifacts:\n  x: { archive: *m }\n', 3, '', /\*m: aliases are not read/],
    ['a merge key', 'module: a\nbuild: &b { run: x }\nartifacts:\n  <<: *b\n', 4, '', /aliases are not read/],
    ['a tag', 'module: !!js/function a\n', 1, '', /tags/],
    ['a tab', 'module: a\nbuild:\n\trun: x\n', 3, '', /tab/],
    ['two documents', 'module: a\n---\nmodule: b\n', 2, '', /several documents/],
    ['a list for a key', 'module: a\n? [x, y]\n: z\n', 2, '', /plain word/],
    ['a NUL', 'module: a\nbuild:\n  run: "a\\0b"\n', 3, '', /NUL/],
    ['half a character', 'module: a\nbuild:\n  run: "\\ud800"\n', 3, '', /half a character/],
    ['nothing', '', 1, '', /empty/],
    ['only a comment', '# later\n', 1, '', /empty/],
    ['a list', '- module: a\n', 1, '', /not a mapping/],
    ['a web page', '<!DOCTYPE html>\n<html><body>a: b: c</body></html>\n', 1, '', /not YAML/],
    ['__proto__', 'module: a\n__proto__: { declare: auto }\n', 2, '__proto__', /unknown key/],
  ];
  test.each(table)('with %s is refused with its line and key', (_what, text, line, key, message) => {
    const problems = problemsOf(text, 'a');
    expect(problems[0]).toEqual({ file: 'module.yaml', line, key, message: expect.stringMatching(message) });
  });

  test('has all its problems told at once', () => {
    expect(
      problemsOf('module: a\nbiuld: {}\ndeclare: maybe\n')
        .map((p) => p.line)
        .sort(),
    ).toEqual([2, 3]);
  });

  test('may hold a literal ${', () => {
    expect(parseManifest(`${base}resources:\n  - file: { path: /a, content: "$\${HOME} \${root} \${facts.board.port}" }\n`).valid).toBe(true);
  });

  const alias = (n: number): string => `a${n}: &a${n} [${Array.from({ length: 9 }, () => `*a${n - 1}`).join(', ')}]\n`;
  const hostile: Array<[what: string, content: string | Buffer, message: RegExp]> = [
    ['many brackets', '['.repeat(100_000), /nests deeper/],
    ['many braces', '{a: '.repeat(30_000), /nests deeper/],
    ['many dashes', '- '.repeat(60_000), /nests deeper/],
    ['many question marks', '? '.repeat(60_000), /nests deeper/],
    ['a staircase', Array.from({ length: 450 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'), /indented by more/],
    ['twenty thousand keys', Array.from({ length: 12_000 }, (_, i) => `k${i}: v`).join('\n'), /more than 2000 keys/],
    ['a bomb of aliases', `a0: &a0 [x]\n${Array.from({ length: 9 }, (_, i) => alias(i + 1)).join('')}`, /aliases are not read/],
    ['a huge file', `module: a\n# ${'x'.repeat(200_000)}\n`, /at most 131072 are read/],
    ['bytes', Buffer.from([0x6d, 0xff, 0xfe, 0x00]), /not UTF-8/],
  ];
  test.each(hostile)('of %s is refused quickly', (_what, content, message) => {
    const begun = performance.now();
    expect(problemsOf(content)[0]?.message).toMatch(message);
    expect(performance.now() - begun).toBeLessThan(1_000);
  });
});
