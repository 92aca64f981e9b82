import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { type DerivedFrom, type DeriveInput, deriveDeclaration } from '../../src/domain/derive';
import { declaredResource } from '../../src/schema/declaration';
import { manifest } from '../../src/schema/manifest';

const digest = (value: unknown): string =>
  `sha256:${createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest('hex')}`;

const SEALED = { credential: 'board-db/password', version: 2, sealed: 'v1.a.b' };
const READS = { versions: [1], shapes: ['file', 'action', 'service'], features: ['secrets', 'undo', 'environmentFile', 'parts'] };

function board(resources: object[], references: Pick<DerivedFrom, 'values' | 'secrets' | 'instances'> = {}): DerivedFrom {
  return { module: 'board', commit: '4f2c1a9', manifest: manifest.parse({ module: 'board', resources }), artifacts: {}, ...references };
}

function derive(modules: DerivedFrom[], node: Partial<DeriveInput['node']> = {}): ReturnType<typeof deriveDeclaration> {
  return deriveDeclaration({ node: { name: 'alpha', facts: {}, reads: READS, ...node }, version: 1, modules }, digest);
}

const bound = { values: { 'bind.db.host': '10.0.0.7', 'bind.db.note': 'a ${root}' }, secrets: { 'bind.db.password': SEALED } };
const url = { file: { path: '/etc/board.env', mode: '0600', content: 'U=postgres://${bind.db.password}@${bind.db.host}/$${x} ${bind.db.note}' } };

describe('deriving what holds a secret', () => {
  it('leaves it for the host, sealed, beside what else is bound, and nothing of it anywhere else', () => {
    const derived = derive([board([url, { service: { name: 'board', run: ['board'], environmentFile: '/etc//board.env' } }], bound)]);
    if (derived.kind !== 'derived') throw new Error(derived.reason);
    expect(derived.resources.map((one) => declaredResource.parse(one).spec)).toMatchObject([
      { content: 'U=postgres://${secret.bind.db.password}@10.0.0.7/$${x} a $${root}', mode: '0600', secrets: { 'bind.db.password': SEALED } },
      { environmentFile: '/etc/board.env' },
    ]);
    const other = derive([board([{ file: { path: '/a', content: '${bind.db.host}' } }], bound)]);
    expect(JSON.stringify(other)).not.toContain('sealed');
  });

  it('is another digest for another version, and the same for the same', () => {
    const digests = [SEALED, SEALED, { ...SEALED, version: 3, sealed: 'v1.c.d' }].map((one) => {
      const derived = derive([board([url], { ...bound, secrets: { 'bind.db.password': one } })]);
      return derived.kind === 'derived' ? derived.digest : '';
    });
    expect(digests[0]).toBe(digests[1]);
    expect(digests[2]).not.toBe(digests[1]);
  });

  it('places what a module makes for others after its own, each instance with its own words, names and secrets', () => {
    const resources = manifest
      .parse({
        module: 'board',
        provides: [
          {
            instantiation: 'database',
            secrets: ['password'],
            resources: [
              { file: { path: '/run/db/${instance.name}', mode: '0600', content: '${secret.password}' } },
              { action: { name: 'make-${instance.name}', run: ['make', '${instance.name}'], unless: ['is'], undo: ['drop', '${instance.name}'] } },
            ],
          },
        ],
      })
      .provides.flatMap((given) => ('instantiation' in given ? given.resources : []));
    const instances = ['kiosk-db', 'lab-db'].map((name, i) => ({
      name,
      resources,
      values: { 'instance.name': name },
      secrets: { 'secret.password': { ...SEALED, credential: `${name}/password`, version: i + 1 } },
    }));
    const derived = derive([board([{ file: { path: '/etc/own', content: '' } }], { instances })]);
    expect(derived).toMatchObject({
      resources: [
        { id: 'file/etc/own' },
        {
          part: 'kiosk-db',
          id: 'file/run/db/kiosk-db',
          spec: { content: '${secret.password}', secrets: { password: { credential: 'kiosk-db/password', version: 1 } } },
        },
        { id: 'action/make-kiosk-db', spec: { name: 'make-kiosk-db', undo: ['drop', 'kiosk-db'] } },
        { id: 'file/run/db/lab-db', spec: { secrets: { password: { credential: 'lab-db/password', version: 2 } } } },
        { id: 'action/make-lab-db', part: 'lab-db' },
      ],
      modules: { board: { resources: 5 } },
    });
    // A host of before would refuse the word; it has all of a module fail with the first of its parts.
    const before = derive([board([], { instances })], { reads: { ...READS, features: READS.features.filter((one) => one !== 'parts') } });
    expect(before).toMatchObject({ kind: 'derived', modules: { board: { resources: 4 } } });
    expect(JSON.stringify(before)).not.toContain('"part"');
    const [first] = instances;
    if (first === undefined) throw new Error('there is one');
    expect(derive([board([], { instances: [{ ...first, values: { 'instance.name': 'Kiosk DB' } }] })])).toMatchObject({
      reason: 'board: action make-${instance.name} comes to be named make-Kiosk DB: a name is lower-case letters, digits and dashes, at most 63',
    });
  });

  const elsewhere = (about: string): string =>
    `board: ${about} refers to \${bind.db.password}, which is a secret: it may stand in the content of a file of mode "0600" and nowhere else`;
  const needing = (what: string): string => `board: ${what}, which alpha's host cannot read: update the host`;
  const undone = { action: { name: 'a', run: ['a'], unless: ['b'], undo: ['c'] } };
  const fed = { service: { name: 'a', run: ['a'], environmentFile: '/x' } };
  const old = { reads: { versions: [1], shapes: READS.shapes } };

  it.each<[string, ReturnType<typeof derive>, string]>([
    ['a file that others can read', derive([board([{ file: { ...url.file, mode: '0640' } }], bound)]), elsewhere('file /etc/board.env')],
    ['a path', derive([board([{ file: { ...url.file, path: '/${bind.db.password}' } }], bound)]), elsewhere('file /${bind.db.password}')],
    ['a command', derive([board([{ service: { name: 's', run: ['s', '${bind.db.password}'] } }], bound)]), elsewhere('service s')],
    ['an environment', derive([board([{ service: { name: 's', run: ['s'], env: { P: '${bind.db.password}' } } }], bound)]), elsewhere('service s')],
    [
      'a node that has shown no key',
      derive([board([url], { ...bound, secrets: { 'bind.db.password': null } })]),
      'board: file /etc/board.env needs the secret bind.db.password, and alpha has shown no key to seal it to yet: start its host, or update it',
    ],
    ['a host of before secrets', derive([board([url], bound)], old), needing('file/etc/board.env has a sealed secret')],
    ['a host of before undo', derive([board([undone])], old), needing('action/a has an undo')],
    ['a host of before environment files', derive([board([fed])], old), needing('service/a has an environment file')],
    [
      'an address that the node lacks',
      derive([board([{ file: { path: '/a', content: '${node.address}' } }])]),
      'board: file /a needs the fact address, which alpha does not have: tally node set alpha address=VALUE',
    ],
  ])('says what is wrong with %s', (_, derived, reason) => {
    expect(derived).toMatchObject({ kind: 'notWorkedOut', reason });
  });

  it('places a provider before whom it makes something for', () => {
    const provider = { ...board([{ file: { path: '/z', content: '' } }]), module: 'z' };
    const provides = [
      { instantiation: 'database', scope: 'mesh' as const, per: 'module' as const, parameters: {}, secrets: [], resources: [], gives: {} },
    ];
    const consumer = board([{ file: { path: '/b', content: '' } }]);
    const requires = [{ instantiation: 'database', with: {} }];
    const derived = derive([
      { ...consumer, manifest: { ...consumer.manifest, requires } },
      { ...provider, manifest: { ...provider.manifest, provides } },
    ]);
    expect(derived).toMatchObject({ resources: [{ id: 'file/z' }, { id: 'file/b' }] });
  });
});
