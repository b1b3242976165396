// Work that is done at the same time, and is over, all of it, before its caller goes on: also when a part of it fails.
// `Promise.all` rejects at once: a caller that released its lock then would leave work under way that belongs under it.

/** Resolves when all of `parts` have; rejects with the first failure among them, after all have ended. */
export async function allEnded(parts: readonly Promise<unknown>[]): Promise<void> {
  const ends = await Promise.allSettled(parts);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

/**
 * Work on many things, `count` of them at a time. Rejects with the first failure, after what was begun has ended.
 * Nothing is begun after a failure.
 */
export async function inParallel<T>(
  things: Iterable<T> | AsyncIterable<T>,
  count: number,
  work: (thing: T) => Promise<void>,
): Promise<void> {
  const iterator = asAsync(things);
  let hasFailed = false;
  const lane = async (): Promise<void> => {
    while (!hasFailed) {
      try {
        const { done, value } = await iterator.next();
        if (done === true) return;
        await work(value);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  try {
    await allEnded(Array.from({ length: count }, lane));
  } finally {
    await iterator.return?.(undefined);
  }
}

async function* asAsync<T>(things: Iterable<T> | AsyncIterable<T>): AsyncGenerator<T> {
  yield* things;
}
