// Copies the items of one part to another part of the same kind, in a folder or a database. An item
// arrives whole or not at all, so an interrupted copy continues.
import { createHash } from "node:crypto";
import type { Cancel } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { TransferEnd, TransferItem } from "./transfer-end.ts";

export interface TransferOptions extends Cancel {
  readonly verify?: boolean | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface Transferred {
  /** The number of tickets or objects that were new to the copy. */
  readonly added: number;
  /** The number that the source has. */
  readonly total: number;
  readonly equal?: boolean;
}

/** How many items are added together. */
const itemsAtOnce = 64;

/** Copies what `to` lacks. Throws COPY_CONFLICT for the first item that differs between the two. */
export async function transfer<Item extends TransferItem>(
  from: TransferEnd<Item>,
  to: TransferEnd<Item>,
  { verify = false, onProgress, signal = new AbortController().signal }: TransferOptions,
): Promise<Transferred> {
  await from.settle();
  const undo = await to.begin(from.shown);
  let added = 0;
  let hasAdded = false;
  const onAdding = (count: number): void => {
    hasAdded = true;
    added += count;
  };
  try {
    const total = await addMissing(from, to, { onProgress, signal }, onAdding);
    await to.finish(from);
    onProgress?.(total, total);
    const result = { added, total };
    return verify ? { ...result, equal: (await sumOf(from, signal)) === (await sumOf(to, signal)) } : result;
  } catch (error) {
    if (!hasAdded) await undo();
    throw error;
  }
}

/** Returns how many tickets or objects the source has. */
async function addMissing<Item extends TransferItem>(
  from: TransferEnd<Item>,
  to: TransferEnd<Item>,
  { onProgress, signal }: Pick<TransferOptions, "onProgress"> & { readonly signal: AbortSignal },
  onAdding: (count: number) => void,
): Promise<number> {
  const known = new Map<string, string>();
  for await (const item of to.items(signal)) known.set(item.id, digestOf(item));
  const expected = await from.total();
  let done = 0;
  let batch: Item[] = [];
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    onAdding(countOf(batch));
    await to.add(batch, signal);
    batch = [];
    onProgress?.(done, expected);
  };
  for await (const item of from.items(signal)) {
    signal.throwIfAborted();
    done += item.count;
    const digest = known.get(item.id);
    if (digest === undefined) {
      if (batch.push(item) >= itemsAtOnce) await flush();
    } else if (digest !== digestOf(item)) throw conflict(item.id, from.shown, to.shown);
  }
  await flush();
  return done;
}

/** The same for two parts with the same items: the sum of their hashes, because the orders may differ. */
async function sumOf<Item extends TransferItem>(end: TransferEnd<Item>, signal: AbortSignal): Promise<bigint> {
  let sum = 0n;
  for await (const item of end.items(signal)) {
    signal.throwIfAborted();
    await item.check(signal);
    sum += BigInt(`0x${hashOf(item).digest("hex")}`);
  }
  return sum;
}

function digestOf(item: TransferItem): string {
  return hashOf(item).digest("base64url").slice(0, 24);
}

function hashOf({ id, content }: TransferItem): ReturnType<typeof createHash> {
  return createHash("sha256").update(JSON.stringify([id, content]));
}

function countOf(items: readonly TransferItem[]): number {
  return items.reduce((sum, { count }) => sum + count, 0);
}

function conflict(what: string, from: string, to: string): Error {
  const message = `${to} has another ${what} than ${from}: one of them was used since it was copied. Nothing of ${to} was replaced. Copy to a new location, or remove the other one there.`;
  return holdfastError("COPY_CONFLICT", message, { path: to, what });
}

/** LOCK_LOST: nothing of the copy counts any more that this process has not finished. */
export function judgedDead(path: string): Error {
  const message = `${path}: other processes judged this one dead while it copied. Repeat the copy: it continues.`;
  return holdfastError("LOCK_LOST", message, { path });
}
