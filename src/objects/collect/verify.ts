// Verifies an object store: its buckets, every key in them, and their indexes.
import { listIfThere } from "../../durable/publish/directory.ts";
import type { VerifyOptions, VerifyReport } from "../../common.ts";
import { isId } from "../../format/id.ts";
import { moveAside } from "../../part/aside.ts";
import { describeUnreadable, Findings } from "../../part/findings.ts";
import type { Buckets } from "../bucket/buckets.ts";
import { findLost } from "../bucket/lost-keys.ts";
import type { ObjectsStorage } from "../bucket/objects-storage.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { KeyIndex } from "../listing/key-index.ts";
import { verifyIndex } from "../listing/rebuild-index.ts";
import { keyDirectories } from "../listing/walk-keys.ts";
import type { DamagedSlot } from "../model/damaged-entry.ts";
import type { PutEntry } from "../model/entry.ts";
import { findUploadOf } from "../version/body-files.ts";
import { KeyCheck } from "./key-check.ts";
import { SlotRepair } from "./set-aside.ts";
import { UploadCheck } from "./upload-check.ts";

/**
 * With `repair`, an unreadable slot is set aside, a key that is entirely unreadable is moved aside,
 * and a damaged index is rebuilt. Everything readable stays, even a version with a damaged body:
 * reading it reports the damage. Nothing is deleted. The caller of a repair must hold the lease of
 * collections.
 */
export async function verifyObjects(
  storage: ObjectsStorage,
  buckets: Buckets,
  { signal, repair = false, onProgress }: VerifyOptions,
): Promise<VerifyReport> {
  const verification = new Verification(storage, repair);
  for (const name of await buckets.names()) {
    const bucket = await verification.findBucket(buckets, name);
    if (bucket === undefined) continue;
    const directories: string[] = [];
    for await (const directory of keyDirectories(bucket)) directories.push(directory);
    for (const [index, directory] of directories.entries()) {
      signal?.throwIfAborted();
      await verification.checkKey(bucket, directory);
      onProgress?.(index + 1, directories.length);
    }
    await verification.checkUploads(bucket, signal);
    await verification.checkIndex(bucket);
    if (!repair) await verification.checkAside(bucket);
  }
  return verification.report();
}

class Verification {
  readonly #storage: ObjectsStorage;
  readonly #isRepair: boolean;
  readonly #findings = new Findings();
  /** Versions that were uploaded in parts, by upload id. */
  readonly #uploaded = new Map<string, PutEntry>();
  #checked = 0;

  constructor(storage: ObjectsStorage, isRepair: boolean) {
    this.#storage = storage;
    this.#isRepair = isRepair;
  }

  report(): VerifyReport {
    const { hasDamage, problems } = this.#findings;
    return { ok: !hasDamage, checked: this.#checked, problems };
  }

  /**
   * Returns undefined if the bucket was deleted, or if its configuration is unreadable; then its
   * keys are not checked.
   */
  async findBucket(buckets: Buckets, name: string): Promise<OpenBucket | undefined> {
    const path = this.#storage.layout.config(name);
    const what = `The configuration of the bucket ${name}`;
    try {
      const found = await buckets.findLiving(name);
      const lost = await findLost(buckets, this.#storage, name);
      if (lost !== undefined) this.#findings.damage({ path: lost.path }, lost.what, lost.remedy);
      return found;
    } catch (error) {
      const damage = describeUnreadable(what, error);
      this.#findings.damage({ path }, damage.what, damage.remedy);
      return undefined;
    }
  }

  async checkKey(bucket: OpenBucket, directory: string): Promise<void> {
    const { checked, key, faults, uploaded = [], isUnusable } = await new KeyCheck(bucket, directory).check();
    this.#checked += checked;
    for (const entry of uploaded) this.#uploaded.set(findUploadOf(entry) ?? "", entry);
    const isMoved = this.#isRepair && isUnusable && (await this.#moveAside(bucket, directory));
    const settable = faults.flatMap(({ damaged }) => damaged ?? []);
    const set = this.#isRepair && key !== undefined ? await this.#setAside(bucket, key, settable) : [];
    for (const { path, what, remedy, severity, damaged } of faults) {
      const { aside } = bucket.layout;
      const isSet = set.some(({ slot }) => slot === damaged?.slot);
      const moved = `It was moved to ${aside}; its bodies are still in place. Restore the damaged files and move it back.`;
      const setAway = `It was copied to ${aside} and removed from its key. All other versions of ${JSON.stringify(key)} are unchanged; the newest one is current.`;
      const done = isMoved ? moved : setAway;
      const isDone = isMoved || isSet;
      // The content of a slot that was set aside is lost to readers, so the report is not "ok".
      if (severity === "damage")
        this.#findings.damage({ path }, what, isDone ? done : remedy, { repaired: isDone, isLost: true });
      else if (severity === "leftover") this.#findings.leftover({ path }, what, remedy ?? "");
      else this.#findings.note({ path }, what, remedy ?? "");
    }
  }

  /** Runs after the check of the keys, which finds out which uploads were completed. */
  async checkUploads(bucket: OpenBucket, signal: AbortSignal | undefined): Promise<void> {
    const uploaded = new Map(this.#uploaded);
    this.#uploaded.clear();
    for (const id of await listIfThere(this.#storage.disk, bucket.layout.uploads)) {
      signal?.throwIfAborted();
      if (!isId(id)) continue;
      const check = new UploadCheck(bucket, id, uploaded.get(id), this.#isRepair);
      for (const { path, what, remedy, isRepaired, isLost } of await check.check())
        this.#findings.damage({ path }, what, remedy, { repaired: isRepaired, isLost });
    }
  }

  /** Runs after the check of the keys, which has moved unreadable keys aside. */
  async checkIndex(bucket: OpenBucket): Promise<void> {
    await verifyIndex(bucket, () => KeyIndex.open(bucket), this.#findings, { repair: this.#isRepair });
  }

  async #setAside(bucket: OpenBucket, key: string, slots: readonly DamagedSlot[]): Promise<readonly DamagedSlot[]> {
    return slots.length === 0 ? [] : await new SlotRepair(bucket).setAside(key, slots);
  }

  /** Reports what a repair moved aside. It stays until an operator has checked it. */
  async checkAside({ layout }: OpenBucket): Promise<void> {
    const { length } = await listIfThere(this.#storage.disk, layout.aside);
    if (length === 0) return;
    const what = `It contains ${length} file(s) or directories that a repair set aside. Until they are moved away, bodies that no key names are kept, and the bucket cannot be deleted.`;
    this.#findings.note(
      { path: layout.aside },
      what,
      "Restore what you need, then move this directory out of the store.",
    );
  }

  async #moveAside({ layout }: OpenBucket, directory: string): Promise<boolean> {
    const { disk } = this.#storage;
    return await moveAside({ disk, directory: layout.directory, newId: () => this.#storage.newId() }, directory);
  }
}
