// All versions of a key as of one moment, whatever other processes do to it meanwhile.
import { holdfastError } from "../../errors.ts";
import type { OpenKey } from "./key-chains.ts";
import type { KeyHead } from "./key-head.ts";
import type { KeyVersion } from "./key-history.ts";

/** A key that goes and comes at each of so many looks is another process's loop. */
const attemptsMax = 100;

export interface ReadKey {
  readonly head: KeyHead;
  /** The newest last. */
  readonly versions: readonly KeyVersion[];
}

/** Undefined when there is no such key. CORRUPT, NEWER_FORMAT. */
export async function readKey({ chain, history }: OpenKey): Promise<ReadKey | undefined> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const head = await chain.findHead();
    if (head === undefined) return undefined;
    const versions = await history.read(head);
    if (versions !== undefined) return { head, versions };
  }
  const path = chain.names.directory;
  const message = `${path} changed at each of ${attemptsMax} looks. Try again later, or have it verified.`;
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}
