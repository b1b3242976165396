// For one who slept past his lease while he staged a record.
import { isHoldfastError } from "../../errors.ts";

/** Who sleeps past his lease so often in one call is not getting anywhere. */
const sleepsMax = 10;

/**
 * The directory was swept under him, so nothing of it was linked, and the next life gives him another one. Whether it still counts is for the chain to say, by a fence
 * or by what has changed since. Only around a chain: the LOCK_LOST of a user's own code is his.
 */
export async function despiteSleep<T>(work: () => Promise<T>): Promise<T> {
  for (let sleeps = 1; ; sleeps++) {
    try {
      return await work();
    } catch (error) {
      if (sleeps >= sleepsMax || !isHoldfastError(error, "LOCK_LOST")) throw error;
    }
  }
}
