/**
 * Archives: packed so that the same tree gives the same bytes anywhere, and unpacked only after every entry of them has
 * been looked at. Nothing of a refused archive is written.
 */
export { ArchiveRefused, defaultLimits, hashesOfArchive, inspectArchive } from './inspect';
export { packDirectory, packFiles } from './pack';
export { unpackArchive } from './unpack';
export { hashesOfWheel, normaliseWheel, unpackWheel } from './wheel';
