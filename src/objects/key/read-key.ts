// Reads all versions of a key as of one moment, whatever other processes do meanwhile.
import { holdfastError } from "../../errors.ts";
import type { OpenKey } from "./key-chains.ts";
import type { KeyHead } from "./key-head.ts";
import type { KeyContent } from "./key-versions.ts";

/**
 * How often a read is repeated because the key was replaced. Beyond that, another process replaces
 * it in a loop.
 */
const attemptsMax = 100;

export interface ReadKey extends KeyContent {
  readonly head: KeyHead;
}

/** Returns undefined if there is no such key. */
export async function readKey({ chain, history }: OpenKey): Promise<ReadKey | undefined> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const head = await chain.findHead();
    if (head === undefined) return undefined;
    const content = await history.read(head);
    if (content !== undefined) return { head, ...content };
  }
  const path = chain.names.directory;
  const message = `${path} changed during each of ${attemptsMax} attempts to read it. Try again later, or verify the store.`;
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}
