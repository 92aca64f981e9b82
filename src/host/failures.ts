/** The resource cannot be brought about; the message is one line for whoever reads the report. */
export class ResourceFailed extends Error {
  override readonly name = 'ResourceFailed';
}

/** A newer declaration waits. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}
