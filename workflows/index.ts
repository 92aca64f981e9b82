/** Everything that runs inside a workflow sandbox; imports only src/domain and types. */
export { comparisonQuery, lineQuery, moduleWorkflow, nudge } from './module';
export { fullPassModules, sweepModules, watchSources } from './passes';
