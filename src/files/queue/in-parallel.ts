// Work on many things, a few of them at the same time.

/** Rejects with the first failure, after what was begun has ended. Nothing is begun after a failure. */
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
  const ends = await Promise.allSettled(Array.from({ length: count }, lane));
  await iterator.return?.(undefined);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function* asAsync<T>(things: Iterable<T> | AsyncIterable<T>): AsyncGenerator<T> {
  yield* things;
}
