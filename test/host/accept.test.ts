import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { acceptEnvelope, type Expected } from '../../src/host/accept';
import { canonicalDigest, generateKeyPair, sign } from '../../src/link';
import { DECLARATION_TYPE, type Declaration } from '../../src/schema/declaration';
import { action, archive, declarationOf, directory, file, type Machine, machine, service } from './machine';

const key = generateKeyPair();
const stranger = generateKeyPair();
const pack = { repository: 'tally/m', digest: `sha256:${'1'.repeat(64)}`, blob: `sha256:${'2'.repeat(64)}`, size: 1 };
let m: Machine;
let expected: Expected;

beforeAll(async () => {
  m = machine();
  mkdirSync(join(m.folder, 'outside'));
  symlinkSync(join(m.folder, 'outside'), join(m.root, 'out'));
  const { root } = await m.host();
  expected = { mesh: 'home', node: 'alpha', meshPublicKey: key.publicKey, root, last: { sequence: 5, digest: `sha256:${'0'.repeat(64)}` } };
});
afterAll(() => m.remove());

const good = declarationOf([file('/etc/x', 'x'), service('web', ['true'], { directory: '/' }), action('a', ['true'], ['true'])], 6);
const signed = (payload: object, by = key, type = DECLARATION_TYPE) => Buffer.from(JSON.stringify(sign(type, payload, by.privateKey)));
const withResources = (resources: unknown[]): object => ({ ...good, resources, digest: canonicalDigest(resources) });
const accept = (body: Buffer, over: Partial<Expected> = {}) => acceptEnvelope(body, { ...expected, ...over });

test('what is signed for this node, whole and newer is accepted', () => {
  expect(accept(signed(good))).toEqual({ kind: 'accepted', declaration: good });
  expect(accept(signed(good), { last: null })).toMatchObject({ kind: 'accepted' });
});

test('what is sealed for it is accepted in a file of its owner alone', () => {
  expect(accept(secretly({}))).toMatchObject({ kind: 'accepted' });
  expect(accept(secretly({ mode: '0400' }))).toMatchObject({ kind: 'accepted' });
});

test('the key may be given as PEM', () => {
  const pem = `-----BEGIN PUBLIC KEY-----\n${key.publicKey}\n-----END PUBLIC KEY-----\n`;
  expect(accept(signed(good), { meshPublicKey: pem })).toMatchObject({ kind: 'accepted' });
});

test('the very one that was accepted last is no news and no refusal: its acknowledgement was lost', () => {
  expect(accept(signed(good), { last: { sequence: 6, digest: good.digest } })).toEqual({ kind: 'known' });
});

const tampered = (): Buffer => {
  const envelope = sign(DECLARATION_TYPE, good, key.privateKey);
  return Buffer.from(JSON.stringify({ ...envelope, payload: Buffer.from(JSON.stringify({ ...good, sequence: 9 })).toString('base64') }));
};

const [first = file('/etc/x', 'x')] = good.resources;

const sealed = { credential: 'board.db/password', version: 1, sealed: 'v1.a.b' };
const secretly = (spec: object): Buffer =>
  signed(withResources([{ ...first, spec: { path: '/etc/x', mode: '0600', content: 'p=${secret.p}', secrets: { p: sealed }, ...spec } }]));

/** Each is refused whole, with a reason that names it, and the sequence where somebody vouches for it. */
const table: ReadonlyArray<[string, () => Buffer, number | null, RegExp]> = [
  ['no JSON', () => Buffer.from('run: rm -rf /'), null, /not JSON/],
  ['no envelope', () => Buffer.from(JSON.stringify(good)), null, /not a signed envelope/],
  ['an action sent by itself', () => Buffer.from(JSON.stringify({ action: { run: ['reboot'] } })), null, /not a signed envelope/],
  ['another key', () => signed(good, stranger), null, /signature does not count/],
  ['a payload that was changed', tampered, null, /signature does not count/],
  ['another type of message', () => signed(good, key, 'application/vnd.tally.node.v1+json'), null, /signature does not count/],
  ['another version', () => signed({ ...good, version: 2 }), 6, /version/],
  ['an unknown field', () => signed({ ...good, urgent: true }), 6, /urgent/],
  ['an unknown field of a spec', () => signed(withResources([{ ...first, spec: { ...first.spec, owner: 'root' } }])), 6, /owner/],
  ['an unknown shape', () => signed(withResources([{ ...first, shape: 'package' }])), 6, /shape/],
  ['another mesh', () => signed({ ...good, mesh: 'away' }), 6, /mesh away/],
  ['another node', () => signed({ ...good, node: 'beta' }), 6, /node beta/],
  ['the last sequence with another content', () => signed({ ...good, sequence: 5 }), 5, /not above 5/],
  ['an earlier sequence', () => signed({ ...good, sequence: 4 }), 4, /not above 5/],
  ['another digest', () => signed({ ...good, digest: `sha256:${'1'.repeat(64)}` }), 6, /digest/],
  ['one target twice', () => signed(declarationOf([file('/etc/x', 'x'), file('/etc//./x/', 'y', { module: 'n' })], 6)), 6, /same target/],
  ['one target in two shapes', () => signed(declarationOf([file('/etc/x', 'x'), directory('/etc/x')], 6)), 6, /same target/],
  ['a file in a file', () => signed(declarationOf([file('/etc/x', 'x'), file('/etc/x/y/z', 'y', { module: 'n' })], 6)), 6, /lies in m: file\/etc\/x/],
  [
    "a file in another module's archive",
    () => signed(declarationOf([archive('/opt', pack), file('/opt/a/x', 'x', { module: 'n' })], 6)),
    6,
    /lies in/,
  ],
  ['an archive over what lies there', () => signed(declarationOf([file('/opt/x', 'x'), archive('/opt', pack)], 6)), 6, /lies in/],
  ['an archive in an archive', () => signed(declarationOf([archive('/opt', pack), archive('/opt/a', pack)], 6)), 6, /lies in/],
  ['one service twice', () => signed(declarationOf([service('web', ['a']), service('web', ['b'], {}, 'n')], 6)), 6, /same target/],
  ['one id twice', () => signed(declarationOf([file('/a', 'x'), { ...file('/b', 'x'), id: 'file/a' }], 6)), 6, /twice/],
  ['an action of no build', () => signed(declarationOf([action('a', ['true'], ['true'])], 6, { builds: {} })), 6, /action of no build/],
  ['a path out of the root', () => signed(declarationOf([file('/etc/../../x', 'x')], 6)), 6, /none under a root/],
  ['a path by a link out of the root', () => signed(declarationOf([file('/out/x', 'x')], 6)), 6, /leads out/],
  ['a directory of a service by a link out', () => signed(declarationOf([service('web', ['a'], { directory: '/out/x' })], 6)), 6, /leads out/],
  ['the root itself', () => signed(declarationOf([directory('/')], 6)), 6, /none under a root/],
  ['a file without content', () => signed(withResources([{ ...first, spec: { path: '/x', mode: '0644' } }])), 6, /exactly one/],
  ['a secret that others could read', () => secretly({ mode: '0640' }), 6, /holds a secret and has the mode 0640: it is at most 0600/],
  ['a secret in a program', () => secretly({ mode: '0700' }), 6, /at most 0600/],
  ['a secret that does not come', () => secretly({ content: '${secret.p}${secret.q}' }), 6, /names the secret q, which does not come with it/],
  ['a secret that is not named', () => secretly({ content: '$${secret.p}' }), 6, /comes with the secret p, which it does not name/],
  ['a secret beside an artifact', () => secretly({ content: undefined, artifact: pack }), 6, /no content to fill them into/],
  ['an environment file elsewhere', () => signed(declarationOf([service('web', ['a'], { environmentFile: '/../x' })], 6)), 6, /none under a root/],
  ['a NUL in a path', () => signed(declarationOf([file('/x\0y', 'x')], 6)), 6, /path/],
];

test.each(table)('%s is refused', (_what, body, sequence, reason) => {
  const found = accept(body());
  expect(found).toEqual({ kind: 'refused', sequence, reason: expect.stringMatching(reason) });
  expect(found.kind === 'refused' && found.reason).not.toContain('\n');
});

test('actions of two modules may share a name', () => {
  const declared: Declaration = declarationOf([action('a', ['true'], ['true']), action('a', ['true'], ['true'], { module: 'n' })], 6);
  expect(accept(signed(declared))).toMatchObject({ kind: 'accepted' });
});

test('a module may lay files into its own archive, and into directories of others', () => {
  const declared = declarationOf(
    [directory('/opt', { module: 'n' }), archive('/opt/a', pack), directory('/opt/a/etc'), file('/opt/a/etc/conf', 'x')],
    6,
  );
  expect(accept(signed(declared))).toMatchObject({ kind: 'accepted' });
});
