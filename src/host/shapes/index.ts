/** The shapes that this host reads. Each is loaded when a declaration first has one. */
import type { Shape as Name } from '../../schema/declaration';
import type { Shape } from '../shape';

const loaders: Record<Name, () => unknown> = {
  file: () => (require('./file') as typeof import('./file')).file,
  directory: () => (require('./directory') as typeof import('./directory')).directory,
  archive: () => (require('./archive') as typeof import('./archive')).archive,
  service: () => (require('./service') as typeof import('./service')).service,
  action: () => (require('./action') as typeof import('./action')).action,
};

export const shapeNames = Object.keys(loaders) as readonly Name[];

/** Specs and memos are the shape's own; whoever has only a name passes on what it was given. */
export function shapeOf(name: string): Shape<unknown, unknown> | null {
  return Object.hasOwn(loaders, name) ? (loaders[name as Name]() as Shape<unknown, unknown>) : null;
}
