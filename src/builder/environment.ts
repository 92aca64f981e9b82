import { HOME_INSIDE, systemPath, TMP_INSIDE } from './sandbox';

/** Zip files, and so wheels, know no time before 1980. The time of the commit would make each commit another artifact. */
const SOURCE_DATE_EPOCH = '315532800';

/** What reaches a package index through the surroundings; taken over for `fetch` alone. */
const ROUTES = [
  ...['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'],
  ...['GOPROXY', 'GOSUMDB', 'npm_config_registry', 'PIP_INDEX_URL', 'PIP_CERT'],
];

/**
 * All that a command gets from outside its tree and home. Of the builder's own environment only the path of its tools is in it,
 * and for `fetch` the routes to package indexes, but none with a password in it.
 */
export function commandEnvironment(
  builder: NodeJS.ProcessEnv,
  manifest: Readonly<Record<string, string>>,
  inputs: Readonly<Record<string, string>>,
  { step, hasNetwork }: { step: 'fetch' | 'run' | 'test'; hasNetwork: boolean },
): Record<string, string> {
  const cache = `${HOME_INSIDE}/.cache`;
  return {
    PATH: systemPath(builder.PATH),
    HOME: HOME_INSIDE,
    TMPDIR: TMP_INSIDE,
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    CI: 'true',
    SOURCE_DATE_EPOCH,
    GOFLAGS: '-trimpath -buildvcs=false -ldflags=-buildid=',
    GOPATH: `${HOME_INSIDE}/go`,
    GOCACHE: `${cache}/go-build`,
    GOMODCACHE: `${HOME_INSIDE}/go/pkg/mod`,
    npm_config_cache: `${cache}/npm`,
    npm_config_update_notifier: 'false',
    PIP_CACHE_DIR: `${cache}/pip`,
    // Bytecode beside the sources holds their times.
    PYTHONDONTWRITEBYTECODE: '1',
    CARGO_HOME: `${HOME_INSIDE}/.cargo`,
    ...(step === 'fetch' ? routes(builder) : {}),
    // A tool that knows says what is missing instead of waiting for a network.
    ...(hasNetwork ? {} : { CARGO_NET_OFFLINE: 'true', GOPROXY: 'off' }),
    ...inputs,
    ...manifest,
    ...paths(manifest, inputs),
  };
}

/** A list of places that both name: the module's first. */
function paths(
  { PYTHONPATH: own }: Readonly<Record<string, string>>,
  { PYTHONPATH: laid }: Readonly<Record<string, string>>,
): Record<string, string> {
  return own === undefined || laid === undefined ? {} : { PYTHONPATH: `${own}:${laid}` };
}

function routes(builder: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    ROUTES.flatMap((key) => {
      const value = builder[key];
      return value === undefined || /\/\/[^/]*@/.test(value) ? [] : [[key, value]];
    }),
  );
}
