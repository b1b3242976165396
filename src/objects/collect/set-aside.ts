// SlotRepair repairs a damaged slot: it copies the slot to `aside/`, then appends an entry that
// removes it from its key. Everything readable stays.
import { parentOf, ensureDirectory, syncNames } from "../../durable/publish/directory.ts";
import { isHoldfastError } from "../../errors.ts";
import { writeBody } from "../../part/body.ts";
import type { Disk } from "../../ports/disk.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { openIfThere } from "../key/entry-file.ts";
import { nothing, retry } from "../key/key-chain.ts";
import type { OpenKey } from "../key/key-chains.ts";
import { currentSlotWithout, type KeyContent } from "../key/key-versions.ts";
import { mayChangeOthers, type DamagedSlot } from "../model/damaged-entry.ts";
import { coverDamaged } from "../version/delete-version.ts";

const chunkBytes = 256 * 1024;

/**
 * False for a slot that another release or another user can read. Also false for one that may have
 * set a retention or a legal hold: removing it would lose that protection.
 */
export function canBeSetAside({ settings }: OpenBucket, { entry }: DamagedSlot): boolean {
  return isHoldfastError(entry.error, "CORRUPT") && !(settings.objectLock && mayChangeOthers(entry));
}

export class SlotRepair {
  readonly #bucket: OpenBucket;

  constructor(bucket: OpenBucket) {
    this.#bucket = bucket;
  }

  /**
   * Sets slots aside, and returns those that it did. Skips slots that are readable again or were
   * removed.
   */
  async setAside(key: string, slots: readonly DamagedSlot[]): Promise<readonly DamagedSlot[]> {
    // The copies are durable before the entry is appended: from then on, the slot may be
    // overwritten.
    for (const { path } of slots) await this.copy(path);
    await this.settleCopies();
    return await this.remove(key, slots);
  }

  protected async copy(path: string): Promise<void> {
    const { storage, layout } = this.#bucket;
    const file = await openIfThere(storage.disk, path);
    if (file === undefined) return;
    try {
      await ensureDirectory(storage.disk, layout.aside);
      const name = path.slice(layout.keys.length + 1).replaceAll("/", "+");
      await writeBody(storage.disk, `${layout.aside}/${name}.${storage.newId()}`, chunksOf(file));
    } finally {
      await file.close();
    }
  }

  protected async settleCopies(): Promise<void> {
    const { storage, layout } = this.#bucket;
    if (!(await storage.disk.canOpen(layout.aside))) return;
    for (const path of [layout.aside, parentOf(layout.aside)]) await syncNames(storage.disk, path);
  }

  protected async remove(key: string, slots: readonly DamagedSlot[]): Promise<readonly DamagedSlot[]> {
    const bucket = this.#bucket;
    return await bucket.useKey(key, async (open) => {
      const removed = await removeSlots(bucket, key, open, new Set(slots.map(({ slot }) => slot)));
      if (removed === undefined) return [];
      for (const damaged of removed.slots) await coverDamaged(bucket, open, removed.head, damaged);
      return removed.slots;
    });
  }
}

async function removeSlots(bucket: OpenBucket, key: string, open: OpenKey, wanted: ReadonlySet<number>) {
  const { storage } = bucket;
  const id = storage.newId();
  let slots: readonly DamagedSlot[] = [];
  const head = await bucket.append(key, open, async (newest) => {
    if (newest === undefined) return nothing;
    const content = await open.history.read(newest);
    if (content === undefined) return retry;
    slots = content.unread.filter(({ slot }) => wanted.has(slot));
    if (slots.length === 0) return nothing;
    const removed = [...slots.map(({ slot }) => slot), ...supersededBy(content, slots)];
    const [config, current] = [bucket.state.number, currentSlotWithout(content, removed)];
    return { add: { entry: { kind: "remove", id, key, config, atMs: storage.nowMs(), slots: removed, current } } };
  });
  return head && { head, slots };
}

/** Finds the null versions that a damaged null version replaced. They must not become current again. */
function supersededBy({ versions, damaged }: KeyContent, slots: readonly DamagedSlot[]): number[] {
  const nulls = slots.filter((each) => damaged.includes(each) && each.entry.legible.isNull === true);
  const last = Math.max(0, ...nulls.map(({ slot }) => slot));
  return versions.filter(({ slot, entry }) => entry.isNull && slot < last).map(({ slot }) => slot);
}

async function* chunksOf(file: Awaited<ReturnType<Disk["open"]>>): AsyncGenerator<Uint8Array> {
  for (let at = 0; ;) {
    const chunk = await file.read(at, chunkBytes);
    if (chunk.length === 0) return;
    yield chunk;
    at += chunk.length;
  }
}
