// Adding an entry to a key: it is staged when it is known what it says, and again when the
// configuration of the bucket has changed meanwhile.
import { discard, newTemp, stage } from "../../durable/publish/staging.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { AppendOptions, Candidate } from "../key/key-chain.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import { encodeEntry, type KeyEntry } from "../model/entry.ts";
import { mustBeOf } from "./find-version.ts";

export interface EntryMaker {
  /**
   * Looks at what the entry is to be linked behind. Throws when it must not be; "again" when the key
   * is another one by now, undefined when there is nothing to add.
   */
  readonly judge?: ((head: KeyHead | undefined) => Promise<"go on" | "again" | undefined>) | undefined;
  /** Called after `judge`, and again only when what it gives may have changed. */
  readonly make: (head: KeyHead | undefined) => KeyEntry;
  /** Whether the entry depends on what it is linked behind. Otherwise it is staged once. */
  readonly isDependent?: boolean | undefined;
  /** What lies behind the record. */
  readonly inline?: Uint8Array | undefined;
  /** The directory of the session that it must be staged in. Default: that of the present session. */
  readonly temp?: string | undefined;
}

export interface AddedEntry {
  readonly head: KeyHead;
  /** What it was linked behind. */
  readonly before: KeyHead | undefined;
}

/** Undefined when there was nothing to add. */
export async function appendEntry(
  bucket: OpenBucket,
  name: string,
  key: OpenKey,
  { judge, make, inline, temp: directory, isDependent = false }: EntryMaker,
  options: AppendOptions = {},
): Promise<AddedEntry | undefined> {
  const { place } = bucket;
  let staged: Candidate | undefined;
  let before: KeyHead | undefined;
  const unstage = async (): Promise<void> => {
    if (staged !== undefined) await discard(place.staging, staged.temp);
    staged = undefined;
  };
  const stageEntry = async (entry: KeyEntry): Promise<Candidate> => {
    const proof = encodeEntry(entry);
    const bytes = inline === undefined ? proof : Buffer.concat([proof, inline]);
    const path = directory === undefined ? undefined : newTemp(place.staging, directory);
    return { entry, proof, temp: await stage(place.staging, bytes, { sync: place.isSynced, path }) };
  };
  try {
    const head = await key.chain.append(async (newest) => {
      before = newest;
      if (newest !== undefined) mustBeOf(name, newest, key);
      // Configurations never go back along a chain: otherwise a writer that slept could destroy the
      // null version that enabling versions has promised to keep.
      if ((newest?.entry.config ?? 0) > bucket.state.number) {
        await bucket.readAgain();
        await unstage();
      }
      const judgement = (await judge?.(newest)) ?? (judge === undefined ? "go on" : undefined);
      if (judgement !== "go on") return judgement;
      if (isDependent) await unstage();
      return (staged ??= await stageEntry(make(newest)));
    }, options);
    // A first slot was moved, not linked.
    if (head !== undefined && key.chain.names.isFirst(head.number)) staged = undefined;
    return head && { head, before };
  } finally {
    await unstage();
  }
}
