/** One reading for all who ask at the same moment, kept for `ageMs`: however many ask, the store is asked once in that time. */
export function sharedReading<T>(ageMs: number, read: () => Promise<T>): () => Promise<T> {
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<T> | null = null;
  return async () => {
    if (reading === null || performance.now() - readAt > ageMs) {
      readAt = performance.now();
      const started = read();
      reading = started;
      // A failed reading is not kept: whoever asks next tries again.
      started.catch(() => {
        if (reading === started) reading = null;
      });
    }
    return await reading;
  };
}
