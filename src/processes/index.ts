/** The processes of a local mesh: control plane, builder and the demo's hosts, each a real child that never runs twice. */
export { type Supervised, supervise } from './supervised';
