/**
 * The HTTP API: what the CLI, the board and webhooks speak to. It answers from the store, asks the workflows for what
 * operators want, and holds nothing that another control process would miss.
 */
export { brokerAccess } from './access';
export type { ApiDeps } from './deps';
export { serverProbes } from './probes';
export { createApi } from './server';
