/** The demo, played once in a data directory: real commits in real repositories become running software on three machines. */
export { readMarker, writeMarker } from './marker';
export { playDemo } from './play';
export { stage } from './stage';
export { DEMO_TIMES } from './times';
