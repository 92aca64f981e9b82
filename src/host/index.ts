/**
 * The host: keeps one machine as its newest declaration says. It removes nothing that it did not make, leaves nothing half
 * written, and whatever it does stands in its journal first. Each part is loaded when it is needed.
 */
export { stopServices } from './services';
