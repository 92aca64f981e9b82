/**
 * The only store of facts. One family of questions a file, SQL written as SQL and set-based; whatever changes a fact of
 * a module bumps its facts version by triggers, so that no writer can forget it.
 */
export type { Db } from './db';
export { openInventory } from './db';
export { migrate } from './migrate';
export * from './settings';
export * from './tokens';
export * from './modules';
export * from './webhooks';
export * from './sources';
export * from './requests';
export * from './claims';
export * from './answers';
export * from './overdue';
export * from './logs';
export * from './builds';
export * from './declare';
export * from './nodes';
export * from './sending';
export * from './reports';
export * from './intents';
export * from './letters';
export * from './overview';
export * from './details';
export * from './prune';
