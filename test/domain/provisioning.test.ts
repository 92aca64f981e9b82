import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import {
  type Candidate,
  givenBy,
  type Instance,
  instanceName,
  instantiationsOf,
  isTaken,
  misfit,
  parametersOf,
  provisionOf,
  resolve,
  ungiven,
  valuesOfInstance,
} from '../../src/domain/provisioning';
import { manifest } from '../../src/schema/manifest';

const digest = (value: unknown): string =>
  `sha256:${createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest('hex')}`;

const notes = { module: 'notes', node: 'beta', site: 'home' };
const at = (module: string, node: string, scope: Candidate['scope'] = 'mesh', site = 'home'): Candidate => ({ module, node, site, scope });

describe('a requirement', () => {
  it('with one candidate is satisfied silently', () => {
    expect(resolve(notes, [at('pg', 'alpha')], null, null)).toEqual({ kind: 'satisfied', provider: { module: 'pg', node: 'alpha', site: 'home' } });
  });

  it('with none in reach is missing', () => {
    expect(resolve(notes, [at('pg', 'alpha', 'node'), at('pg', 'gamma', 'site', 'shop'), at('notes', 'beta')], null, null)).toEqual({
      kind: 'missing',
    });
  });

  it('with several names them', () => {
    expect(resolve(notes, [at('pg', 'beta'), at('mysql', 'alpha')], null, null)).toMatchObject({
      kind: 'several',
      candidates: [{ module: 'mysql' }, { module: 'pg' }],
    });
  });

  it('is satisfied by the nearest placement of one module', () => {
    expect(resolve(notes, [at('pg', 'alpha'), at('pg', 'beta')], null, null)).toMatchObject({ provider: { node: 'beta' } });
    expect(resolve(notes, [at('pg', 'alpha'), at('pg', 'gamma', 'mesh', 'shop')], null, null)).toMatchObject({ provider: { node: 'alpha' } });
    expect(resolve(notes, [at('pg', 'alpha'), at('pg', 'delta')], null, null)).toMatchObject({ kind: 'several' });
  });

  it('keeps an operator’s choice, and what satisfied it before, when a new candidate appears', () => {
    const candidates = [at('pg', 'alpha'), at('mysql', 'beta')];
    expect(resolve(notes, candidates, { provider: 'pg', node: null }, null)).toMatchObject({ provider: { module: 'pg' } });
    expect(resolve(notes, candidates, null, { provider: 'pg', node: 'alpha' })).toMatchObject({ provider: { module: 'pg' } });
    expect(resolve(notes, candidates, { provider: 'mysql', node: null }, { provider: 'pg', node: 'alpha' })).toMatchObject({
      provider: { module: 'mysql' },
    });
  });

  it('does not fall to another when what an operator chose is gone', () => {
    expect(resolve(notes, [at('mysql', 'beta')], { provider: 'pg', node: null }, null)).toEqual({ kind: 'missing' });
  });

  const candidate = fc.record({
    module: fc.constantFrom('p', 'q', 'r'),
    node: fc.constantFrom('alpha', 'beta', 'gamma'),
    site: fc.constantFrom('home', 'shop'),
    scope: fc.constantFrom('node' as const, 'site' as const, 'mesh' as const),
  });
  const candidates = fc.uniqueArray(candidate, { selector: ({ module, node }) => `${module} ${node}`, maxLength: 6 });

  it('is resolved alike in whatever order the candidates come', () => {
    fc.assert(
      fc.property(candidates, fc.nat(), (some, turn) => {
        const turned = [...some.slice(turn % (some.length + 1)), ...some.slice(0, turn % (some.length + 1))].reverse();
        expect(resolve(notes, turned, null, null)).toEqual(resolve(notes, some, null, null));
      }),
    );
  });

  it('once satisfied stays so, whatever appears beside it', () => {
    fc.assert(
      fc.property(candidates, candidates, (some, more) => {
        const first = resolve(notes, some, null, null);
        if (first.kind !== 'satisfied') return;
        const there = new Set(some.map(({ module, node }) => `${module} ${node}`));
        const all = [...some, ...more.filter(({ module, node }) => !there.has(`${module} ${node}`))];
        expect(resolve(notes, all, null, { provider: first.provider.module, node: first.provider.node })).toEqual(first);
      }),
    );
  });
});

const proxy = manifest.parse({
  module: 'proxy',
  provides: [
    {
      instantiation: 'http-route',
      parameters: { host: { is: 'host' }, port: { is: 'port' }, path: { is: 'text', default: '/' } },
      secrets: ['token'],
      gives: { url: 'http://${node.address}:${facts.proxy.port}${with.path}', name: '${instance.name}', token: '${secret.token}' },
    },
  ],
});
const route = provisionOf(proxy, 'http-route');
if (route === null) throw new Error('the proxy provides no route');
const beta = { name: 'beta', site: 'home', facts: { 'notes.port': '8081', address: '10.0.0.2' } };
const alpha = { name: 'alpha', site: 'home', facts: { address: '10.0.0.1', 'proxy.port': '80' } };
const needing = (parameters: object) =>
  manifest.parse({ module: 'notes', requires: [{ instantiation: 'http-route', as: 'route', with: parameters }], resources: [] });

describe('an instance', () => {
  it('is made from what the consumer says, with the facts of its node, and from defaults', () => {
    const [need] = instantiationsOf(needing({ host: 'notes.home', port: '${facts.notes.port}' }));
    if (need === undefined) throw new Error('nothing is needed');
    const found = parametersOf(need, beta);
    if ('wrong' in found) throw new Error(found.wrong);
    expect(misfit(route, found.values)).toBeNull();
    const instance: Instance = { name: 'notes-route', consumer: 'notes', consumerNode: beta, parameters: found.values };
    expect(valuesOfInstance(route, instance, 'alpha')).toEqual({
      'instance.name': 'notes-route',
      'instance.consumer': 'notes',
      'instance.node': 'beta',
      'instance.address': '10.0.0.2',
      'with.host': 'notes.home',
      'with.port': '8081',
      'with.path': '/',
    });
    expect(givenBy(route, instance, alpha, 'beta')).toEqual({
      values: { url: 'http://10.0.0.1:80/', name: 'notes-route' },
      secrets: { token: 'token' },
      lacking: {},
    });
    expect(givenBy(route, instance, { ...alpha, facts: {} }, 'beta').lacking).toEqual({ url: 'node.address' });
    expect(
      givenBy(route, { ...instance, consumerNode: { ...beta, name: 'alpha' } }, { ...alpha, facts: { 'proxy.port': '80' } }, 'alpha').values.url,
    ).toBe('http://127.0.0.1:80/');
  });

  it.each([
    [{ host: 'a', port: '1', prot: '2' }, 'gives http-route the parameter prot, which it does not take: it takes host, path, port'],
    [{ host: 'a' }, 'does not say the parameter port of http-route'],
    [
      { host: 'a"; } server { root /; } #', port: '1' },
      'gives http-route the parameter host as "a\\"; } server { root /; } #": it takes a host name in lower-case letters, as in notes.home',
    ],
    [{ host: 'a', port: '80; return 200' }, 'gives http-route the parameter port as "80; return 200": it takes a port, 1 to 65535'],
    [{ host: 'a', port: '1', path: '/a\nb' }, 'gives http-route the parameter path as "/a\\nb": it takes at most 1000 characters on one line'],
  ])('is not made from %j', (given, wrong) => {
    expect(misfit(route, given)).toBe(wrong);
  });

  it.each([
    [
      'word',
      ['UTF8', 'SQL_ASCII', 'a.b-c', '9'],
      ['', '.', '..', '-v', 'a/b', 'a b', "a'b", 'a"', 'a;b', '$(a)', '`a`', '${root}', 'a\n', 'é', 'a'.repeat(201)],
    ],
    [
      'host',
      ['a', 'notes.home', 'a-1.b'],
      ['', '.', 'a.', '.a', 'a..b', 'Notes.home', '*.home', '~^.*$', '-a', 'a-', 'a_b', `${'a'.repeat(64)}.b`, '${root}', 'a\n'],
    ],
    ['port', ['1', '65535'], ['0', '65536', '080', '-1', '8 0', '1e3', '80\n', '']],
    ['number', ['0', '-3', '12'], ['', '1.5', '1e3', 'x', '1\n', '1'.repeat(16)]],
    ['text', ['', 'it\'s "so"; $(x) ${y}'], ['a\nb', 'a\rb', 'a\0', 'a\u2028b', 'a'.repeat(1001)]],
  ] as const)('takes as a %s what has no other meaning where it is put', (is, right, wrong) => {
    expect(right.filter((value) => !isTaken(is, value))).toEqual([]);
    expect(wrong.filter((value) => isTaken(is, value))).toEqual([]);
  });

  it('is not made from a fact that the node lacks', () => {
    const [need] = instantiationsOf(needing({ port: '${facts.notes.prot}' }));
    if (need === undefined) throw new Error('nothing is needed');
    expect(parametersOf(need, beta)).toEqual({
      wrong: 'needs the fact notes.prot, which beta does not have (tally node set beta notes.prot=VALUE), for the parameter port of route',
    });
  });

  it('gives only what it gives', () => {
    const using = manifest.parse({
      module: 'notes',
      requires: [{ instantiation: 'http-route', as: 'route', with: {} }],
      resources: [{ file: { path: '/a', content: '${bind.route.url} $${bind.route.x} ${bind.route.adress}' } }],
    });
    expect(ungiven(using, 'route', route)).toBe('uses ${bind.route.adress}, which http-route does not give: it gives name, token, url');
  });

  it('has a name of its own, however its parts are cut', () => {
    const taken = new Set<string>();
    const part = fc.stringMatching(/^[a-z]([a-z-]{0,20}[a-z])?$/);
    fc.assert(
      fc.property(fc.uniqueArray(fc.record({ consumer: part, binding: part, node: fc.option(part) }), { selector: digest }), (all) => {
        taken.clear();
        for (const of of all) {
          const name = instanceName(of, (one) => taken.has(one), digest);
          expect(name).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
          expect(name.length).toBeLessThanOrEqual(40);
          expect(taken.has(name)).toBe(false);
          taken.add(name);
        }
      }),
    );
    expect(instanceName({ consumer: 'notes', binding: 'db', node: null }, () => false, digest)).toBe('notes-db');
    // Cut elsewhere, the parts come to the same words.
    const [one, two] = [
      { consumer: 'a-b', binding: 'c', node: null },
      { consumer: 'a', binding: 'b-c', node: null },
    ];
    const first = instanceName(one, () => false, digest);
    expect(instanceName(two, (name) => name === first, digest)).toMatch(/^a-b-c-[0-9a-f]{8}$/);
  });
});
