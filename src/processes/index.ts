/** The processes of a local mesh: control plane, builder and the demo's hosts, each a real child that never runs twice. */
export { Interrupted, type Interruption, watchInterruption } from './interruption';
export { processesOf } from './leftovers';
export { CONTROL_FLAGS, CONTROL_MEMORY } from './memory';
export { keptToken, type LocalMesh, localMesh, placesOf, stopLeftProcesses, untilAnswering } from './mesh';
export { supervise } from './supervised';
