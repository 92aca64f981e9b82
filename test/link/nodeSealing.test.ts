import fc from 'fast-check';
import { createSealing, generateKeyPair, generateSealKeyPair, openOnNode, sealKeyOf, sealToNode, VerificationError } from '../../src/link';

const alpha = generateSealKeyPair();
const beta = generateSealKeyPair();
const about = { mesh: 'home', node: 'alpha', credential: 'board.db/password', version: 1 };

const name = fc.string({ minLength: 1, maxLength: 20 });
const subject = fc.record({ mesh: name, node: name, credential: name, version: fc.nat() });
const runs = { numRuns: 30 };

describe('what is sealed to a node', () => {
  it('opens with its key, whatever it is and whatever it is about, and is another text each time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 300 }), subject, async (text, what) => {
        const [one, other] = [await sealToNode(alpha.publicKey, text, what), await sealToNode(alpha.publicKey, text, what)];
        expect(one).not.toBe(other);
        expect(await openOnNode(alpha.privateKey, one, what)).toBe(text);
        expect(await openOnNode(alpha.privateKey, other, what)).toBe(text);
      }),
      runs,
    );
  });

  it('does not open about anything else, nor with another key', async () => {
    await fc.assert(
      fc.asyncProperty(subject, subject, async (what, other) => {
        const sealed = await sealToNode(alpha.publicKey, 'hunter2', what);
        await expect(openOnNode(beta.privateKey, sealed, what)).rejects.toThrow(VerificationError);
        fc.pre(JSON.stringify(what) !== JSON.stringify(other));
        await expect(openOnNode(alpha.privateKey, sealed, other)).rejects.toThrow(VerificationError);
      }),
      runs,
    );
  });

  it.each<[string, Partial<typeof about>]>([
    ['mesh', { mesh: 'work' }],
    ['node', { node: 'beta' }],
    ['credential', { credential: 'board.db/token' }],
    ['version', { version: 2 }],
  ])('is bound to its %s', async (_, other) => {
    const sealed = await sealToNode(alpha.publicKey, 'hunter2', about);
    await expect(openOnNode(alpha.privateKey, sealed, { ...about, ...other })).rejects.toThrow("is not sealed to this node's key");
  });

  it('does not open when any character of it was changed', async () => {
    const sealed = await sealToNode(alpha.publicKey, 'hunter2', about);
    const first = sealed.indexOf('.') + 1;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: first, max: sealed.length - 1 }), fc.constantFrom(...'AZaz09_-.'), async (at, by) => {
        const changed = sealed.slice(0, at) + by + sealed.slice(at + 1);
        fc.pre(!isSame(changed, sealed));
        await expect(openOnNode(alpha.privateKey, changed, about)).rejects.toThrow(VerificationError);
      }),
      { numRuns: 60 },
    );
    await expect(openOnNode(alpha.privateKey, sealed.slice(3), about)).rejects.toThrow('not sealed in the form v1');
  });

  it('is sealed to nothing that is no X25519 key', async () => {
    await expect(sealToNode(generateKeyPair().publicKey, 'hunter2', about)).rejects.toThrow('not an X25519 key');
    await expect(sealToNode('bm90IGEga2V5', 'hunter2', about)).rejects.toThrow('not an X25519 key');
    expect(sealKeyOf(alpha.privateKey)).toBe(alpha.publicKey);
  });
});

/** Base64 without padding has spare bits at its end: another letter there may stand for the same bytes. */
function isSame(one: string, other: string): boolean {
  const bytes = (text: string): string => JSON.stringify(text.split('.').map((part) => Buffer.from(part, 'base64url').toString('hex')));
  return bytes(one) === bytes(other);
}

test('a credential is 32 random bytes, kept for the mesh about one thing only', () => {
  const sealing = createSealing(Buffer.alloc(32, 7));
  const one = sealing.make();
  expect(Buffer.from(one, 'base64url')).toHaveLength(32);
  expect(sealing.make()).not.toBe(one);
  const kept = sealing.keep(one, 'credential/board.db/password/1');
  expect(kept).not.toContain(one);
  expect(sealing.open(kept, 'credential/board.db/password/1')).toBe(one);
  expect(() => sealing.open(kept, 'credential/board.db/password/2')).toThrow(/does not open/);
});
