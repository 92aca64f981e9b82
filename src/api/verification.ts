/** What was verified, as findings that a person reads one a line. */
import { createHash } from 'node:crypto';
import type { Verification } from '../builder/verifyArtifact';
import type { VerifyAnswer } from '../schema/graphApi';

export interface KnownKey {
  readonly builder: string;
  readonly publicKey: string;
}

export function verificationOf(verified: Verification, keys: readonly KnownKey[]): VerifyAnswer['artifacts'][number] {
  const { artifact, checks, dependencies, built, key } = verified;
  const signedBy = key === null ? null : nameOf(key, keys);
  const gone = dependencies.filter((one) => !one.isThere);
  return {
    artifact: `${artifact.repository}@${artifact.digest}`,
    isRight: verified.isGood,
    findings: [
      { isRight: true, says: `there: ${artifact.kind} ${artifact.repository}@${artifact.digest}` },
      ...checks.map(({ check, isGood, says }) => ({
        isRight: isGood,
        says: check === 'signature' && isGood && signedBy !== null ? `signature: by the key of ${signedBy}` : `${check}: ${says}`,
      })),
      ...gone.map((one) => ({
        isRight: false,
        says: `input ${one.module}/${one.artifact}: the registry does not hold ${one.repository}@${one.digest}`,
      })),
    ],
    signedBy,
    built,
    inputs: dependencies,
  };
}

const SHOWN_HEX = 12;

/** A builder that has no key of this kind may be named in a statement that another signed: the key says who it was. */
function nameOf(key: string, keys: readonly KnownKey[]): string {
  const known = keys.find((one) => one.publicKey === key);
  const print = createHash('sha256').update(key).digest('hex').slice(0, SHOWN_HEX);
  return known === undefined ? print : `${known.builder} (${print})`;
}
