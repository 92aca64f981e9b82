/**
 * The only store of facts. One family of questions a file, SQL written as SQL and set-based; whatever changes a fact of
 * a module bumps its facts version by triggers, so that no writer can forget it.
 */

export * from './answers';
export * from './builds';
export * from './claims';
export { dropPastVersions, ensureCredentials, rotateCredentials } from './credentials';
export type { Db } from './db';
export { openInventory } from './db';
export * from './declare';
export * from './details';
export { instanceStatuses, rotateInstance, type UnmadeInstance, unmadeInstances } from './instances';
export * from './intents';
export * from './letters';
export * from './logs';
export { migrate } from './migrate';
export * from './modules';
export * from './nodes';
export * from './overdue';
export * from './overview';
export * from './placing';
export * from './prune';
export * from './reports';
export * from './requests';
export * from './sending';
export * from './settings';
export * from './sources';
export * from './tokens';
export * from './webhooks';
export * from './wiring';
