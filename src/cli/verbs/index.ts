/** Each verb's file, loaded when the verb is asked for. */
import type { Verb } from '../verb';

export const verbs: Readonly<Record<string, () => Verb>> = {
  status: () => (require('./status') as typeof import('./status')).status,
  plan: () => (require('./plan') as typeof import('./plan')).plan,
  why: () => (require('./why') as typeof import('./why')).why,
  log: () => (require('./log') as typeof import('./log')).log,
  build: () => (require('./build') as typeof import('./build')).build,
  push: () => (require('./push') as typeof import('./push')).push,
  nudge: () => (require('./nudge') as typeof import('./nudge')).nudge,
  declare: () => (require('./declare') as typeof import('./declare')).declare,
  hold: () => (require('./hold') as typeof import('./hold')).hold,
  release: () => (require('./release') as typeof import('./release')).release,
  rollback: () => (require('./rollback') as typeof import('./rollback')).rollback,
  cancel: () => (require('./cancel') as typeof import('./cancel')).cancel,
  module: () => (require('./module') as typeof import('./module')).module_,
  node: () => (require('./node') as typeof import('./node')).node,
  assign: () => (require('./assign') as typeof import('./assign')).assign,
  unassign: () => (require('./unassign') as typeof import('./unassign')).unassign,
  open: () => (require('./open') as typeof import('./open')).open,
  doctor: () => (require('./doctor') as typeof import('./doctor')).doctor,
  mesh: () => (require('./mesh') as typeof import('./mesh')).mesh,
  up: () => (require('./upVerb') as typeof import('./upVerb')).upVerb,
  host: () => (require('./host') as typeof import('./host')).host,
  builder: () => (require('./builder') as typeof import('./builder')).builder,
  completion: () => (require('./completion') as typeof import('./completion')).completion,
  names: () => (require('./names') as typeof import('./names')).names,
};
