// How an audit reads: what is missing or damaged is a finding like any other, and keeps nobody from looking at the rest.
import { isHoldfastError } from "../../index.ts";

/** What `read` gives; undefined when it cannot be read, which is told in `disorder`. */
export async function readNoted<T>(disorder: string[], read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    // What the library says of a failed look names the file.
    if (!isHoldfastError(error)) throw error;
    disorder.push(error.message);
    return undefined;
  }
}
