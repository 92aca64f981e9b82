/**
 * What keeps the control plane small. Without them it keeps garbage of a thousand modules that move at once, since nothing
 * on a machine with memory to spare tells it not to. None of them is a limit that it could run into.
 */

/** A small nursery, and a heap that is collected when it has grown by a third and not when it has doubled. */
export const CONTROL_FLAGS = ['--max-semi-space-size=4', '--heap-growing-percent=33'];

/** Threads share two pools of native memory instead of having one each. */
export const CONTROL_MEMORY = { MALLOC_ARENA_MAX: '2' };
