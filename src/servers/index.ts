/**
 * The four servers that Tally stands on: each is found where a variable names it, else run here, on loopback, with its
 * data in one data directory, and stopped by who started it. Of one data directory there are never two.
 */
export { findTestServer } from './find';
export { plainReporter } from './reporter';
export { startServers, stopLeftovers } from './start';
export type { ServerAddresses, Servers, StepReporter } from './types';
