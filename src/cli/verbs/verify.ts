import type { Command } from 'commander';
import { UsageError } from '../../domain/errors';
import type { VerifyAnswer } from '../../schema/graphApi';
import { short } from '../shown';
import { colours, plain, terminalWidth, wrapped } from '../text';
import { answer, api, described, IN_STEP, type Json, NOT_IN_STEP } from '../verb';
import { verifyByKeys } from '../verifyByKeys';

interface Options extends Json {
  readonly key?: readonly string[];
  readonly registry?: string;
}

export function verify(program: Command): void {
  described(
    program.command('verify <artifact>'),
    'what the registry alone proves of an artifact: who signed it, of what it was built, and that all of it is there',
    [
      'tally verify kiosk                        the artifacts of the effective build of a module',
      'tally verify kiosk/web                    one of them',
      'tally verify tally/kiosk@sha256:9c8b…',
      'tally verify tally/kiosk@sha256:9c8b… --key builder-1.pub --registry https://registry.example',
    ],
  )
    .option('--key <key>', 'a public key in base64 or PEM, or a file that holds one; then nobody but the registry is asked', collected)
    .option('--registry <url>', 'with --key: the registry, where REGISTRY_URL does not say it')
    .action(async (artifact: string, { key, registry, ...options }: Options) => {
      if (key === undefined && registry !== undefined)
        throw new UsageError('--registry goes with --key: without a key the control plane asks its own registry, by the keys of its builders');
      const verified = await (key === undefined
        ? api().get<VerifyAnswer>(`verify?${new URLSearchParams({ artifact })}`)
        : byKeys(artifact, key, registry ?? process.env.REGISTRY_URL));
      answer(verified, options, () => verified.artifacts.flatMap((one) => lines(one, terminalWidth())), verified.isRight ? IN_STEP : NOT_IN_STEP);
    });
}

function collected(key: string, before: readonly string[] = []): string[] {
  return [...before, key];
}

async function byKeys(artifact: string, keys: readonly string[], registry: string | undefined): Promise<VerifyAnswer> {
  if (registry === undefined || registry === '') throw new UsageError('which registry? say --registry URL or set REGISTRY_URL');
  return await verifyByKeys(artifact, keys, registry);
}

function lines({ artifact, isRight, findings, built, inputs }: VerifyAnswer['artifacts'][number], width: number): string[] {
  const mark = (right: boolean): string => (right ? colours.green('ok    ') : colours.red('not ok'));
  const made =
    built === null
      ? []
      : [`built from ${short(built.commit)} of ${built.git} (${built.ref}) for ${built.platform}, ${built.builder}, ${built.finishedAt}`];
  const used = inputs.map((one) => `with ${one.module}/${one.artifact} ${one.digest}`);
  return [
    ...wrapped(artifact, width),
    ...findings.flatMap((finding) =>
      wrapped(finding.says, width - 9).map((line, at) => `${at === 0 ? `  ${mark(finding.isRight)}` : '        '} ${line}`),
    ),
    ...[...made, ...used].flatMap((text) => wrapped(plain(text), width - 9).map((line) => `         ${line}`)),
    ...(isRight ? [] : [colours.red('  this is not what a builder that is known here made: do not use it')]),
  ];
}
