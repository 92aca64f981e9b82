import { onPath, run } from './run';

/** A container engine counts only if it answers: a client without its daemon is none. */
export async function answeringEngine(): Promise<string | null> {
  for (const name of ['docker', 'podman']) {
    const path = onPath(name);
    if (path !== null && (await run(path, ['info'], { timeoutMs: 10_000 })).ok) return path;
  }
  return null;
}

export interface ContainerSpec {
  engine: string;
  /** unique on this machine, the same at each start of one data directory */
  name: string;
  image: string;
  /** ports of the container by the port of 127.0.0.1 that leads there */
  ports: Record<number, number>;
  /** folder of the container by the folder of this machine that is mounted there */
  mounts: Record<string, string>;
  /** by name; handed over in the environment, so that no secret stands in an argument list */
  env: Record<string, string>;
}

const PULL_TIMEOUT_MS = 600_000;

/** Starts the container, replacing one of the same name that an earlier run left. */
export async function startContainer(spec: ContainerSpec): Promise<{ ok: boolean; stderr: string }> {
  await removeContainer(spec);
  const flags = [
    ...Object.entries(spec.ports).map(([host, inside]) => `--publish=127.0.0.1:${host}:${inside}`),
    ...Object.entries(spec.mounts).map(([host, inside]) => `--volume=${host}:${inside}`),
    ...Object.keys(spec.env).map((name) => `--env=${name}`),
  ];
  return await run(spec.engine, ['run', '--detach', `--name=${spec.name}`, ...flags, spec.image], {
    timeoutMs: PULL_TIMEOUT_MS,
    env: { ...process.env, ...spec.env },
  });
}

export async function removeContainer({ engine, name }: Pick<ContainerSpec, 'engine' | 'name'>): Promise<void> {
  await run(engine, ['stop', '--time=20', name], { timeoutMs: 40_000 });
  await run(engine, ['rm', '--force', '--volumes', name], { timeoutMs: 40_000 });
}
