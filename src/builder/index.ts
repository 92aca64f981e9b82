/**
 * The builder: takes requests from the broker, looks at commits and builds them, and answers. It knows no store and no Temporal;
 * it runs code of modules, and only where that sees nothing of the builder. What is not the module's own fault is never `failed`.
 */

export { startBuilder } from './agent';
export type { BuilderLimits } from './config';
export { defaultLimits, readBuilderConfig } from './config';
export { openHome } from './home';
export { openJournal } from './journal';
export { STATEMENT_TYPE } from './provenance';
