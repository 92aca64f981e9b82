/** Which artifacts a name means, by the store; what they prove, by the registry alone and the keys of the builders of this mesh. */
import type { FastifyInstance } from 'fastify';
import { type ArtifactRef, parseArtifactRef, verifyArtifact } from '../builder/verifyArtifact';
import { builderKeys, effectiveArtifacts, repositoriesOf } from '../inventory/asking';
import { type VerifyAnswer, verifyQuery } from '../schema/graphApi';
import type { ApiDeps } from './deps';
import { nearest, Problem, parse } from './problems';
import { moduleNamed } from './verbs';
import { verificationOf } from './verification';

/** Of one module at a time: more artifacts than this no build makes. */
const MOST_ARTIFACTS = 50;

export function verifyRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const { db, registry } = deps;

  app.get('/verify', async (request): Promise<VerifyAnswer> => {
    const { artifact } = parse(verifyQuery, request.query);
    const [refs, keys] = await Promise.all([namedArtifacts(deps, artifact), builderKeys(db)]);
    const artifacts: VerifyAnswer['artifacts'][number][] = [];
    // One after the other: each asks the registry for several things at once already.
    for (const ref of refs.slice(0, MOST_ARTIFACTS)) {
      const verification = await verifyArtifact(
        registry,
        ref,
        keys.map((key) => key.publicKey),
      );
      artifacts.push(verificationOf(verification, keys));
    }
    return { isRight: artifacts.every((one) => one.isRight), artifacts };
  });
}

async function namedArtifacts(deps: ApiDeps, asked: string): Promise<ArtifactRef[]> {
  const { db } = deps;
  if (/^sha256:[0-9a-f]{64}$/.test(asked)) {
    const repositories = await repositoriesOf(db, asked);
    if (repositories.length === 0) throw new Problem(404, `no build of this mesh made ${asked.slice(0, 19)}…: say where it is, as repository@digest`);
    return repositories.map((repository) => ({ repository, reference: asked }));
  }
  const [, name, part] = /^([a-z0-9-]+)(?:\/([a-z0-9-]+))?$/.exec(asked) ?? [];
  if (name === undefined) return [parseArtifactRef(asked)];
  const module = await moduleNamed(deps, name);
  const made = await effectiveArtifacts(db, module.name);
  const meant = made.filter((one) => part === undefined || one.name === part);
  if (made.length === 0) throw new Problem(409, `${name} has no fit build with artifacts yet: tally why ${name}`);
  if (meant.length === 0) {
    const near = nearest(
      part ?? '',
      made.map((one) => one.name),
    );
    const helps = near === null ? `tally module show ${name} lists its builds` : `did you mean ${near}?`;
    throw new Problem(404, `there is no artifact ${part ?? ''} of ${name}: ${helps}`);
  }
  return meant.map(({ repository, digest }) => ({ repository, reference: digest }));
}
