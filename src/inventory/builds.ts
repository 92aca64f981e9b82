import { UsageError } from '../domain/errors';
import { short } from '../domain/line';
import type { Db } from './db';

export interface BuildRef {
  readonly id: string;
  readonly commit: string;
  readonly verdict: 'fit' | 'failed' | null;
}

/** A build by its id or the start of its commit (then its newest fit, else newest build). UsageError when there is none or the start is ambiguous. */
export async function resolveBuild(db: Db, module: string, ref: string): Promise<BuildRef> {
  const found = await db.query<BuildRef>(
    `select distinct on (commit) id, commit, verdict from build where module = $1 and (id = $2 or starts_with(commit, $2))
     order by commit, (verdict = 'fit') desc nulls last, try_number desc, id desc limit 3`,
    [module, ref],
  );
  const [first, second] = found;
  if (first === undefined) throw new UsageError(`${module} has no build ${ref}: tally module show ${module} lists its builds`);
  if (second !== undefined)
    throw new UsageError(`${ref} could be ${found.map((build) => short(build.commit)).join(' or ')} of ${module}: say more of it`);
  return first;
}

/** The newest fit build before the one that is declared that is of another commit or made other artifacts: where a rollback goes. */
export async function previousFitBuild(db: Db, module: string): Promise<BuildRef | null> {
  const [row] = await db.query<BuildRef>(
    `with current as (
       select b.id, b.commit, b.answered_at from build b
       where b.id = coalesce((select p.build_id from placement p where p.module = $1 and p.build_id is not null order by p.declared_at desc nulls last limit 1),
                             (select m.effective_build from module m where m.name = $1))
     )
     select b.id, b.commit, b.verdict from build b, current c
     where b.module = $1 and b.verdict = 'fit' and b.answered_at < c.answered_at
       and (b.commit <> c.commit or exists (
         select name, digest from artifact where build_id = b.id except select name, digest from artifact where build_id = c.id))
     order by b.answered_at desc limit 1`,
    [module],
  );
  return row ?? null;
}
