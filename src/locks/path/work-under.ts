// Working under a hold: it is released in every case, and an error of the work arrives unchanged.
import type { Hold } from "../../common.ts";

export async function workUnder<H extends Hold, T>(hold: H, work: (hold: H) => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await work(hold);
  } catch (error) {
    // What the work says is what the caller has to know; a lock that could not be released ends with this process.
    await hold.release().catch(() => undefined);
    throw error;
  }
  await hold.release();
  return result;
}
