// KeyCheck verifies one key: it reads every slot and compares every body with its digest. A fault
// counts only if a second read confirms it, because other processes keep working.
import { listIfThere } from "../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { FileContent } from "../../part/content.ts";
import { describeUnreadable } from "../../part/findings.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { findKeyName } from "../bucket/key-name.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { findDyingEntries } from "../key/dying-key.ts";
import { findSlotOrDamage, openIfThere, readSlot } from "../key/entry-file.ts";
import { KeyChain } from "../key/key-chain.ts";
import { KeyHistory } from "../key/key-history.ts";
import { isBlockName, type KeyNames } from "../key/key-names.ts";
import { readKey, type ReadKey } from "../key/read-key.ts";
import { mayChangeOthers, type DamagedSlot } from "../model/damaged-entry.ts";
import type { BodyFile, PutEntry } from "../model/entry.ts";
import { findBodyFiles, findUploadOf, hasBodyFiles } from "../version/body-files.ts";
import { findIdOf, versionIdOf } from "../version/find-version.ts";
import { canBeSetAside } from "./set-aside.ts";

/** How many slots are read in parallel. */
const readsAtOnce = 16;

/** Errors that concern the key itself. */
const unreadable = ["CORRUPT", "NEWER_FORMAT", "IO_ERROR", "INVALID_PATH", "NO_PERMISSION", "RESOURCE_BUSY"] as const;

export interface KeyFault {
  readonly path: string;
  readonly what: string;
  readonly remedy?: string | undefined;
  /** "leftover": the rest of a removed key, in which nothing counts. */
  readonly severity: "damage" | "leftover" | "note";
  /** The unreadable slot, if a repair can set it aside. */
  readonly damaged?: DamagedSlot | undefined;
}

export interface CheckedKey {
  /** Number of slots that were read. */
  readonly checked: number;
  /** The name of the key, if known. */
  readonly key?: string | undefined;
  readonly faults: readonly KeyFault[];
  /** Versions that were uploaded in parts. */
  readonly uploaded?: readonly PutEntry[];
  /** True if nothing of the key can be used, so that a repair moves it away. */
  readonly isUnusable: boolean;
}

export interface BodyFault extends KeyFault {
  /** The id of the version that the body belongs to. */
  readonly id: string;
}

type KeyReading = ReadKey | "gone" | { readonly error: unknown };

export class KeyCheck {
  readonly #bucket: OpenBucket;
  readonly #directory: string;
  readonly #names: KeyNames;

  constructor(bucket: OpenBucket, directory: string) {
    this.#bucket = bucket;
    this.#directory = directory;
    this.#names = new KeyChain(bucket.storage, directory).names;
  }

  async check(): Promise<CheckedKey> {
    const first = await this.#look();
    const isSound = first === "gone" || (!("error" in first) && first.unread.length === 0);
    const look = isSound ? first : await this.#look();
    if (look === "gone") return { checked: 0, faults: await this.#dying(), isUnusable: false };
    if ("error" in look) return this.#unreadable(look.error);
    const { head, versions, unread } = look;
    const { number: checked } = head;
    const key = await findKeyName(this.#bucket, { chain: new KeyChain(this.#bucket.storage, this.#directory) }, head);
    if (key !== undefined && this.#bucket.layout.key(key) !== this.#directory) {
      const what = `It contains the entries of the key ${JSON.stringify(key)}, which belong elsewhere.`;
      return { checked: 0, faults: [this.#damage(what, "Move it away.")], isUnusable: true };
    }
    const damages = unread.map((each) => this.#unread(key, each));
    // Without its name, the key can be neither read nor written.
    if (key === undefined) {
      const isUnusable = unread.every(({ entry }) => isHoldfastError(entry.error, "CORRUPT"));
      return { checked, faults: damages, isUnusable };
    }
    const missed: BodyFault[] = [];
    for (const version of versions)
      if (version.entry.kind === "put") missed.push(...(await this.#checkVersion(look, version.slot, version.entry)));
    const faults = [...damages, ...(await this.#copies(look)), ...(await this.confirm(missed))];
    const uploaded = versions.flatMap(({ entry }) => (findUploadOf(entry) === undefined ? [] : [entry as PutEntry]));
    return { checked, key, faults, uploaded, isUnusable: false };
  }

  #unread(key: string | undefined, damaged: DamagedSlot): KeyFault {
    const { slot, path, entry } = damaged;
    const { error, legible } = entry;
    const id = findIdOf(slot, legible);
    const isVersion = id !== undefined && !mayChangeOthers(entry);
    const subject = isVersion ? `The version ${id} of ${JSON.stringify(key ?? "")}` : "An entry";
    const { what, remedy } = describeUnreadable(subject, error);
    const isSettable = key !== undefined && canBeSetAside(this.#bucket, damaged);
    const ways = isSettable
      ? "Restore the file from a backup, or repair the store, which sets this entry aside."
      : "Restore the file from a backup. A repair leaves it where it is.";
    return { path, what, remedy: remedy ?? ways, severity: "damage", damaged: isSettable ? damaged : undefined };
  }

  /** Reads the key from the disk, not from this process's cache. */
  async #look(): Promise<KeyReading> {
    const look = await this.#read();
    if (look === "gone" || !("error" in look) || !isHoldfastError(look.error, "RESOURCE_BUSY")) return look;
    const before = await this.#listing();
    const again = await this.#read();
    if (again === "gone" || !("error" in again) || (await this.#listing()) !== before) return again;
    // No other process changed the key meanwhile, so the reason is a block that lost its first
    // slot.
    const message = `${this.#directory}: the first slot of its newest block is missing. Restore it from a backup.`;
    return { error: holdfastError("CORRUPT", message, { path: this.#directory }, again.error) };
  }

  async #read(): Promise<KeyReading> {
    const { storage } = this.#bucket;
    const chain = new KeyChain(storage, this.#directory);
    try {
      return (await readKey({ chain, history: new KeyHistory(storage.disk, chain.names) })) ?? "gone";
    } catch (error) {
      if (isHoldfastError(error, ...unreadable)) return { error };
      throw error;
    }
  }

  /**
   * A version is removed before its body. If the version still exists after its body was found
   * missing, the body is lost; otherwise another process removed both.
   */
  protected async confirm(missed: readonly BodyFault[]): Promise<readonly KeyFault[]> {
    if (missed.length === 0) return [];
    const look = await this.#look();
    if (look === "gone") return [];
    if ("error" in look) return this.#unreadable(look.error).faults;
    const living = new Set(look.versions.map(({ entry }) => entry.id));
    return missed.filter(({ id }) => living.has(id));
  }

  /** Returns the names in the key's directory and in its blocks. */
  async #listing(): Promise<string> {
    const { disk } = this.#bucket.storage;
    const names = (await listIfThere(disk, this.#directory)).sort();
    for (const block of names.filter(isBlockName))
      names.push(...(await listIfThere(disk, `${this.#directory}/${block}`)));
    return names.join("\n");
  }

  #unreadable(error: unknown): CheckedKey {
    if (isHoldfastError(error, "RESOURCE_BUSY")) {
      const what = "It changed during every attempt to read it, so it was not verified.";
      const note = { path: this.#directory, what, remedy: "Verify it again later.", severity: "note" as const };
      return { checked: 0, faults: [note], isUnusable: false };
    }
    const { what, remedy } = describeUnreadable("An entry", error);
    // Does not move entries of a newer release, and entries that the disk fails to read at the
    // moment.
    return { checked: 0, faults: [this.#damage(what, remedy)], isUnusable: isHoldfastError(error, "CORRUPT") };
  }

  /**
   * The closing entry of a closed key is removed last. If there is none, the key was not closed,
   * and its first slot was lost.
   */
  async #dying(): Promise<readonly KeyFault[]> {
    if (!(await this.#hasLostFirst())) return [];
    const what = "It has entries, but its first slot is missing: nothing in it counts.";
    const remedy = "Restore the first slot from a backup before anything is put to this key, or remove the directory.";
    return [{ path: this.#directory, what, remedy, severity: "leftover" }];
  }

  async #hasLostFirst(): Promise<boolean> {
    try {
      const entries = await findDyingEntries(this.#bucket.storage.disk, this.#names);
      return entries !== undefined && entries.length > 0 && entries.every(({ kind }) => kind !== "closed");
    } catch (error) {
      if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT", "IO_ERROR")) return true;
      throw error;
    }
  }

  #damage(what: string, remedy?: string): KeyFault {
    return { path: this.#directory, what, remedy, severity: "damage" };
  }

  /** Every entry has a unique id. If two slots have the same id, one is a copy of the other. */
  async #copies({ head, unread }: ReadKey): Promise<readonly KeyFault[]> {
    const { disk } = this.#bucket.storage;
    const slots = new Map<string, string>();
    const faults: KeyFault[] = [];
    for (let first = 1; first <= head.number; first += readsAtOnce) {
      const count = Math.min(readsAtOnce, head.number - first + 1);
      const paths = Array.from({ length: count }, (_, index) => this.#names.slotPath(head.incarnation, first + index));
      const found = await Promise.all(paths.map((path) => findSlotOrDamage(disk, path)));
      for (const [index, path] of paths.entries()) {
        const entry = found[index]?.entry;
        if (entry?.kind === "damaged" && !unread.some((each) => each.path === path)) faults.push(settled(path));
        if (entry === undefined || entry.kind === "damaged") continue;
        const { id } = entry;
        const other = slots.get(id);
        if (other === undefined) slots.set(id, path);
        else
          faults.push({
            path,
            what: `It has the same entry as ${other}: one is a copy of the other.`,
            severity: "damage",
          });
      }
    }
    return faults;
  }

  async #checkVersion({ head }: ReadKey, slot: number, entry: PutEntry): Promise<BodyFault[]> {
    const path = this.#names.slotPath(head.incarnation, slot);
    const remedy = `Restore the file from a backup, or delete the version ${versionIdOf({ slot, entry })} of ${JSON.stringify(entry.key)}: the other versions are not affected.`;
    const faults: BodyFault[] = [];
    const attempt = async <T>(file: string, subject: string, read: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await read();
      } catch (error) {
        const { what, ...found } = describeUnreadable(subject, error);
        faults.push({ path: file, what, remedy: found.remedy ?? remedy, severity: "damage", id: entry.id });
        return undefined;
      }
    };
    const parts = await attempt(path, "The list of its parts", () => findBodyFiles(this.#bucket, entry));
    if (hasBodyFiles(entry) && parts === undefined) {
      const what = `${entry.partsIn ?? path}, which names the parts of its body, cannot be read.`;
      if (faults.length === 0) faults.push({ path, what, remedy, severity: "damage", id: entry.id });
      return faults;
    }
    const { size, sha256 = "" } = entry;
    const pieces = parts?.map((part) => ({ file: this.#bucket.bodyPath(part.file), digest: part, offset: 0 })) ?? [
      { file: path, digest: { size, sha256 }, offset: undefined },
    ];
    for (const { file, digest, offset } of pieces)
      await attempt(file, `The body of ${path}`, () => this.#checkBody(file, digest, offset));
    return faults;
  }

  async #checkBody(path: string, digest: Omit<BodyFile, "file">, offset: number | undefined): Promise<void> {
    const { disk } = this.#bucket.storage;
    const file = await openIfThere(disk, path);
    if (file === undefined) throw missing(path);
    try {
      const at = offset ?? (await readSlot(file, path)).bodyAt;
      await new FileContent({ path, digest, offset: at, open: async () => file }).verify();
    } catch (error) {
      // On a share, another machine removed the file after it was opened.
      throw hasErrno(error, "ESTALE") ? missing(path) : error;
    } finally {
      await file.close();
    }
  }
}

function missing(path: string): Error {
  return holdfastError("CORRUPT", `${path} is missing.`, { path });
}

/** A later entry removed this slot, so it holds no version. */
function settled(path: string): KeyFault {
  const what = "It cannot be read, but a later entry removed it from its key: nothing else is affected.";
  return { path, what, remedy: "Nothing is left to do.", severity: "note" };
}
