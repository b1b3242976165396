// Runs work in parallel and waits until all of it has ended, even if a part fails. `Promise.all`
// rejects at once: a caller that then releases its lock would leave work running that needs the
// lock.

/** Resolves when all of `parts` have; rejects with the first failure, after all have ended. */
export async function allEnded(parts: readonly Promise<unknown>[]): Promise<void> {
  const ends = await Promise.allSettled(parts);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

/**
 * Works on `count` things at a time. Rejects with the first failure, after all started work has
 * ended. Starts nothing after a failure.
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
