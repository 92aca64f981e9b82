import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  canonicalDigest,
  generateKeyPair,
  keptMeshKey,
  keptSigningKey,
  openWithMeshKey,
  publicKeyOf,
  sealWithMeshKey,
  sign,
  VerificationError,
  verify,
} from '../../src/link';

const TYPE = 'application/vnd.tally.test+json';

describe('a signed message', () => {
  const alpha = generateKeyPair();
  const beta = generateKeyPair();
  const envelope = sign(TYPE, { node: 'alpha', number: 1 }, alpha.privateKey);

  it('opens with the key that signed it', () => {
    expect(verify(envelope, [beta.publicKey, alpha.publicKey], TYPE)).toEqual({ node: 'alpha', number: 1 });
    expect(publicKeyOf(alpha.privateKey)).toBe(alpha.publicKey);
  });

  it.each<[string, () => unknown]>([
    ["another's key", () => verify(envelope, [beta.publicKey], TYPE)],
    ['no key', () => verify(envelope, [], TYPE)],
    ['another type', () => verify(envelope, [alpha.publicKey], 'application/other')],
    ['a type exchanged on the way', () => verify({ ...envelope, payloadType: 'application/other' }, [alpha.publicKey], 'application/other')],
    [
      'a payload changed on the way',
      () => verify({ ...envelope, payload: Buffer.from('{"node":"beta"}').toString('base64') }, [alpha.publicKey], TYPE),
    ],
    ['what is no key', () => verify(envelope, ['bm90IGEga2V5'], TYPE)],
  ])('does not hold with %s', (_, check) => {
    expect(check).toThrow(VerificationError);
  });

  it('is signed as DSSE says: type and lengths are part of what is signed', () => {
    const { publicKey, privateKey } = alpha;
    const shifted = sign(`${TYPE} 2`, { a: 1 }, privateKey);
    expect(() => verify({ ...shifted, payloadType: TYPE }, [publicKey], TYPE)).toThrow(VerificationError);
  });
});

describe('a content digest', () => {
  it('is the same however the keys are ordered, and another for another value', () => {
    expect(canonicalDigest({ b: [1, 'é'], a: null })).toBe(canonicalDigest({ a: null, b: [1, 'é'] }));
    expect(canonicalDigest({ a: [1, 2] })).not.toBe(canonicalDigest({ a: [2, 1] }));
    expect(canonicalDigest({})).toBe('sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a');
  });
});

describe('the key files of a state directory', () => {
  const home = mkdtempSync(path.join(tmpdir(), 'link-keys-'));
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  it('are made once, for the owner alone', () => {
    const first = keptSigningKey(home);
    expect(keptSigningKey(home)).toEqual(first);
    expect(keptMeshKey(home)).toEqual(keptMeshKey(home));
    expect(statSync(path.join(home, 'signing.key')).mode & 0o777).toBe(0o600);
    expect(statSync(path.join(home, 'mesh.key')).mode & 0o777).toBe(0o600);
  });

  it('are refused when others can read them', () => {
    chmodSync(path.join(home, 'mesh.key'), 0o644);
    expect(() => keptMeshKey(home)).toThrow(/chmod 600/);
    chmodSync(path.join(home, 'mesh.key'), 0o600);
  });

  it('seal text about one thing only', () => {
    const key = keptMeshKey(home);
    const sealed = sealWithMeshKey(key, 'hunter2', 'module/kiosk');
    expect(sealed).not.toContain('hunter2');
    expect(openWithMeshKey(key, sealed, 'module/kiosk')).toBe('hunter2');
    expect(() => openWithMeshKey(key, sealed, 'module/other')).toThrow(/does not open/);
    expect(() => openWithMeshKey(Buffer.alloc(32), sealed, 'module/kiosk')).toThrow(/does not open/);
  });
});
