import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { type DerivedFrom, type DeriveInput, deriveDeclaration } from '../../src/domain/derive';
import { declaredResource } from '../../src/schema/declaration';
import { manifest } from '../../src/schema/manifest';

const digest = (value: unknown): string =>
  `sha256:${createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest('hex')}`;

const ARTIFACT = { repository: 'meshboard/meshboard', digest: `sha256:${'1'.repeat(64)}`, blob: `sha256:${'2'.repeat(64)}`, size: 12 };

function from(module: string, written: object, artifacts: DerivedFrom['artifacts'] = {}): DerivedFrom {
  return { module, commit: '4f2c1a9', manifest: manifest.parse({ module, ...written }), artifacts };
}

function on(modules: DerivedFrom[], changes: Partial<DeriveInput['node']> = {}): DeriveInput {
  return { node: { name: 'alpha', facts: {}, reads: null, ...changes }, version: 1, modules };
}

const meshboard = from(
  'meshboard',
  {
    artifacts: { meshboard: { archive: 'out/' } },
    resources: [
      { archive: { path: '/opt/meshboard/', from: 'meshboard' } },
      { file: { path: '/etc/meshboard.json', content: '{"node":"${node.name}","port":"${facts.meshboard.port}"}' } },
      {
        service: {
          name: 'meshboard',
          run: ['${root}/opt/meshboard/meshboard', '--price', '$${root}'],
          ready: { http: 'http://127.0.0.1:${facts.meshboard.port}/healthz' },
        },
      },
    ],
  },
  { meshboard: ARTIFACT },
);

describe('deriving a declaration', () => {
  it('fills in artifacts and the facts of the node, and leaves the root and literals to the host', () => {
    const derived = deriveDeclaration(on([meshboard], { facts: { 'meshboard.port': '8081' } }), digest);
    if (derived.kind !== 'derived') throw new Error(derived.reason);
    expect(derived.resources.map((resource) => declaredResource.parse(resource).id)).toEqual([
      'archive/opt/meshboard',
      'file/etc/meshboard.json',
      'service/meshboard',
    ]);
    const [archive, file, service] = derived.resources;
    expect(archive?.spec).toEqual({ path: '/opt/meshboard', artifact: ARTIFACT });
    expect(file?.spec).toMatchObject({ content: '{"node":"alpha","port":"8081"}', mode: '0644' });
    expect(service?.spec).toMatchObject({
      run: ['${root}/opt/meshboard/meshboard', '--price', '$${root}'],
      ready: { http: 'http://127.0.0.1:8081/healthz', within: 3_000 },
    });
    expect(derived.digest).toBe(digest(derived.resources));
    expect(derived.modules['meshboard']).toEqual({ digest: digest(derived.resources), resources: 3 });
  });

  it('makes a reference inside the value of a fact literal', () => {
    const derived = deriveDeclaration(
      on([from('m', { resources: [{ file: { path: '/a', content: '${facts.x}' } }] })], { facts: { x: '${root}' } }),
      digest,
    );
    expect(derived).toMatchObject({ resources: [{ spec: { content: '$${root}' } }] });
  });

  it.each([
    [
      'a fact that the node lacks',
      on([meshboard]),
      'meshboard: file /etc/meshboard.json needs the fact meshboard.port, which alpha does not have: tally node set alpha meshboard.port=VALUE',
    ],
    [
      'an artifact that the build did not make',
      on([{ ...meshboard, artifacts: {} }]),
      'meshboard: archive /opt/meshboard/ needs the artifact meshboard, which the build of 4f2c1a9 did not make',
    ],
    [
      'a shape that the host cannot read',
      on([from('m', { resources: [{ directory: { path: '/a' } }] })], { reads: { versions: [1], shapes: ['file'] } }),
      "m: directory/a is a directory, which alpha's host cannot read: update the host",
    ],
    [
      'a version that the host cannot read',
      on([from('m', {})], { reads: { versions: [2], shapes: [] } }),
      "alpha's host reads declarations of version 2 and not 1: update the host",
    ],
    [
      'a target above the root',
      on([from('m', { resources: [{ directory: { path: '/${facts.x}/a' } }] })], { facts: { x: '..' } }),
      'm: directory /${facts.x}/a has the target /../a, which is no path under the root of a node',
    ],
  ])('says what is missing for %s', (_what, input, reason) => {
    expect(deriveDeclaration(input, digest)).toMatchObject({ kind: 'notWorkedOut', reason });
  });

  it('does not work out two modules with one path or one service, however it is spelt', () => {
    const a = from('a', { resources: [{ file: { path: '/etc//x/./y', content: '' } }] });
    const b = from('b', { resources: [{ directory: { path: '/etc/x/y/' } }] });
    expect(deriveDeclaration(on([a, b]), digest)).toEqual({
      kind: 'notWorkedOut',
      reason: 'a and b both place path /etc/x/y (file/etc/x/y and directory/etc/x/y): unassign one of them',
      modules: ['a', 'b'],
    });
    const service = { resources: [{ service: { name: 's', run: ['x'] } }] };
    expect(deriveDeclaration(on([from('a', service), from('b', service)]), digest)).toMatchObject({ kind: 'notWorkedOut', modules: ['a', 'b'] });
  });

  it('places what is required before what requires it, else by name, and survives a circle', () => {
    const needs = (module: string, presence: string, provides: string): DerivedFrom =>
      from(module, { requires: [{ presence }], provides: [{ presence: provides }], resources: [{ directory: { path: `/${module}` } }] });
    const order = (modules: DerivedFrom[]): string[] => {
      const derived = deriveDeclaration(on(modules), digest);
      return derived.kind === 'derived' ? derived.resources.map((resource) => resource.module) : [];
    };
    expect(
      order([
        needs('a', 'zone', 'web'),
        needs('b', 'web', 'app'),
        from('z', { provides: [{ presence: 'zone' }], resources: [{ directory: { path: '/z' } }] }),
      ]),
    ).toEqual(['z', 'a', 'b']);
    expect(order([needs('b', 'x', 'y'), needs('a', 'y', 'x')])).toEqual(['a', 'b']);
  });

  it('is the same whatever order the placements come in', () => {
    const modules = fc.uniqueArray(
      fc.record({
        name: fc.stringMatching(/^[a-d]{1,2}$/),
        needs: fc.stringMatching(/^[a-d]$/),
        gives: fc.stringMatching(/^[a-d]$/),
        files: fc.integer({ min: 0, max: 3 }),
      }),
      { selector: (m) => m.name, maxLength: 5 },
    );
    fc.assert(
      fc.property(modules, fc.infiniteStream(fc.nat()), (drawn, random) => {
        const all = drawn.map((m) =>
          from(m.name, {
            requires: [{ presence: m.needs }],
            provides: [{ presence: m.gives }],
            resources: Array.from({ length: m.files }, (_, i) => ({ file: { path: `/${m.name}/${i}`, content: '${node.name}' } })),
          }),
        );
        const keyed = all.map((one) => ({ one, at: random.next().value }));
        const shuffled = keyed.sort((a, b) => a.at - b.at).map(({ one }) => one);
        expect(deriveDeclaration(on(shuffled), digest)).toEqual(deriveDeclaration(on(all), digest));
      }),
    );
  });
});
