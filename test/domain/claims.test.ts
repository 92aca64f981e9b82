import fc from 'fast-check';
import { collidingWith, conflictBetween, type Holder, shownBy } from '../../src/domain/claims';
import { manifest } from '../../src/schema/manifest';

const resourcesOf = (...resources: object[]) => manifest.parse({ module: 'm', resources, artifacts: { app: { archive: 'out/' } } }).resources;

function holder(module: string, changes: Partial<Holder> = {}): Holder {
  return { module, node: 'alpha', site: 'home', claims: [], shows: [], reliesOn: [], ...changes };
}

const facts = (values: Record<string, string>) => (name: string) => values[name];

describe('what resources show', () => {
  it('is each path with the folders above it, each service, and the port of its own machine that it is asked at', () => {
    const resources = resourcesOf(
      { file: { path: '/etc//app/a.json', content: '' } },
      { archive: { path: '/opt/app', from: 'app' } },
      { service: { name: 'app', run: ['app'], ready: { http: 'http://127.0.0.1:${facts.port}/healthz' } } },
    );
    expect(shownBy(resources, facts({ 'facts.port': '8080' }))).toEqual([
      'path/etc/app/a.json',
      'path/opt/app',
      'port/8080',
      'service/app',
      'tree/opt/app',
      'under/etc',
      'under/etc/app',
      'under/opt',
    ]);
  });

  it('is nothing where a reference is not known, and no port of another machine', () => {
    const ready = (of: object) => shownBy(resourcesOf({ service: { name: 'app', run: ['app'], ready: of } }), facts({}));
    expect(ready({ http: 'http://127.0.0.1:${facts.port}/' })).toEqual(['service/app']);
    expect(ready({ http: 'http://db.example:5432/' })).toEqual(['service/app']);
    expect(ready({ tcp: 'db.example:5432' })).toEqual(['service/app']);
    expect(ready({ http: 'https://localhost/' })).toEqual(['port/443', 'service/app']);
    expect(ready({ tcp: '[::1]:70' })).toEqual(['port/70', 'service/app']);
    expect(ready({ tcp: '70' })).toEqual(['port/70', 'service/app']);
  });
});

describe('two placements', () => {
  const port = (scope: 'node' | 'site' | 'mesh') => [{ resource: 'port/80', scope }];

  it('that claim the same of one node are told, with what to do', () => {
    expect(conflictBetween(holder('kiosk', { claims: port('node') }), holder('greeter', { claims: port('node') }))?.says).toBe(
      'kiosk and greeter both claim port/80, of which alpha has one: tally unassign greeter alpha',
    );
  });

  it.each([
    ['node', 'node', 'beta', 'home', false],
    ['node', 'site', 'beta', 'home', true],
    ['site', 'site', 'beta', 'shop', false],
    ['site', 'mesh', 'beta', 'shop', true],
    ['mesh', 'node', 'beta', 'shop', true],
  ] as const)('of scopes %s and %s, the other on %s at %s: the widest counts', (one, other, node, site, isRefused) => {
    const found = conflictBetween(holder('a', { claims: port(one) }), holder('b', { claims: port(other), node, site }));
    expect(found !== null).toBe(isRefused);
  });

  it('of one module are rivals too, where there is one in the mesh', () => {
    const claims = [{ resource: 'role/leader', scope: 'mesh' as const }];
    expect(conflictBetween(holder('a', { claims }), holder('a', { claims, node: 'beta' }))?.says).toBe(
      'a on alpha and a on beta both claim role/leader, of which the mesh has one: tally unassign a beta',
    );
    expect(conflictBetween(holder('a', { claims }), holder('a', { claims }))).toBeNull();
  });

  it.each([
    [
      'one path',
      { file: { path: '/etc/x', content: '' } },
      { directory: { path: '/etc/x/' } },
      'a and b both place /etc/x on alpha: tally unassign b alpha',
    ],
    [
      'a path inside an archive',
      { file: { path: '/opt/app/etc/x', content: '' } },
      { archive: { path: '/opt/app', from: 'app' } },
      'a places something inside /opt/app, which is an archive of b on alpha: tally unassign b alpha',
    ],
    [
      'one service',
      { service: { name: 's', run: ['a'] } },
      { service: { name: 's', run: ['b'] } },
      'a and b both run a service s on alpha: tally unassign b alpha',
    ],
    [
      'one port',
      { service: { name: 's', run: ['a'], ready: { tcp: '127.0.0.1:80' } } },
      { service: { name: 't', run: ['b'], ready: { http: 'http://localhost/' } } },
      'a and b both take port/80 on alpha: tally unassign b alpha',
    ],
  ])('with %s show it without a claim', (_what, one, other, says) => {
    const [a, b] = [holder('a', { shows: shownBy(resourcesOf(one), facts({})) }), holder('b', { shows: shownBy(resourcesOf(other), facts({})) })];
    expect(conflictBetween(a, b)?.says).toBe(says);
    expect(conflictBetween(a, { ...b, node: 'beta' })).toBeNull();
  });

  it('may show one port where one relies on the other, unless it is claimed', () => {
    const a = holder('a', { shows: ['port/80'], reliesOn: ['b'] });
    expect(conflictBetween(a, holder('b', { shows: ['port/80'] }))).toBeNull();
    expect(conflictBetween(a, holder('c', { shows: ['port/80'] }))).not.toBeNull();
    expect(conflictBetween({ ...a, claims: port('node') }, holder('b', { shows: ['port/80'] }))).not.toBeNull();
  });

  it('may have neighbours whose names begin alike', () => {
    const a = holder('a', { shows: shownBy(resourcesOf({ archive: { path: '/opt/app', from: 'app' } }), facts({})) });
    const b = holder('b', { shows: shownBy(resourcesOf({ file: { path: '/opt/app-data/x', content: '' } }), facts({})) });
    expect(conflictBetween(a, b)).toBeNull();
  });
});

describe('for all placements', () => {
  const path = fc.array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`);
  const resource = fc.oneof(
    path.map((at) => ({ file: { path: at, content: '' } })),
    path.map((at) => ({ archive: { path: at, from: 'app' } })),
    fc.constantFrom('s', 't').map((name) => ({ service: { name, run: ['x'] } })),
  );
  const anyHolder = fc.record({
    module: fc.constantFrom('a', 'b', 'c'),
    node: fc.constantFrom('alpha', 'beta'),
    site: fc.constant('home'),
    claims: fc.uniqueArray(
      fc.record({ resource: fc.constantFrom('port/1', 'port/2'), scope: fc.constantFrom('node' as const, 'site' as const, 'mesh' as const) }),
      {
        selector: (claim) => claim.resource,
      },
    ),
    resources: fc.uniqueArray(resource, { maxLength: 3, selector: (one) => JSON.stringify(Object.values(one)[0]) }),
  });
  const holders = anyHolder.map(({ resources, ...rest }) => ({
    ...rest,
    reliesOn: [],
    shows: shownBy(resourcesOf(...resources), facts({})),
    resources,
  }));

  it('a conflict is found from both sides alike', () => {
    fc.assert(fc.property(holders, holders, (one, other) => conflictBetween(one, other)?.resource === conflictBetween(other, one)?.resource));
  });

  it('a conflict is found exactly when two take the same thing', () => {
    const isInside = (inner: string, outer: string) => inner.startsWith(`${outer}/`);
    const paths = (one: { resources: object[] }, shape: string) =>
      one.resources.flatMap((made) =>
        Object.entries(made as Record<string, { path?: string }>).flatMap(([kind, { path: at }]) =>
          at !== undefined && (shape === 'any' || kind === shape) ? [at] : [],
        ),
      );
    const services = (one: { resources: object[] }) =>
      one.resources.flatMap((made) => ('service' in made ? [(made.service as { name: string }).name] : []));
    fc.assert(
      fc.property(holders, holders, (one, other) => {
        const isSame = one.module === other.module && one.node === other.node;
        const isClaimed = one.claims.some((mine) =>
          other.claims.some(
            (theirs) => mine.resource === theirs.resource && (mine.scope !== 'node' || theirs.scope !== 'node' || one.node === other.node),
          ),
        );
        const isShown =
          one.node === other.node &&
          (paths(one, 'any').some((mine) => paths(other, 'any').includes(mine)) ||
            paths(one, 'any').some((mine) => paths(other, 'archive').some((theirs) => isInside(mine, theirs))) ||
            paths(other, 'any').some((mine) => paths(one, 'archive').some((theirs) => isInside(mine, theirs))) ||
            services(one).some((mine) => services(other).includes(mine)));
        expect(conflictBetween(one, other) !== null).toBe(!isSame && (isClaimed || isShown));
      }),
      { numRuns: 500 },
    );
  });

  it('what collides with shows is what the store is asked for: as many are found by it', () => {
    fc.assert(
      fc.property(holders, holders, (one, other) => {
        const asked = collidingWith(one.shows).some((resource) => other.shows.includes(resource));
        const answered = collidingWith(other.shows).some((resource) => one.shows.includes(resource));
        expect(asked).toBe(answered);
      }),
    );
  });
});
