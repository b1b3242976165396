// Verification of one key: every slot is read, and every body compared with its digest. What is found
// counts only if it is still so on a fresh look: other processes go on meanwhile.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { FileContent } from "../../part/content.ts";
import { describeDamage } from "../../part/findings.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { findDyingEntries } from "../key/dying-key.ts";
import { findSlot, openIfThere, readSlot } from "../key/entry-file.ts";
import { KeyChain } from "../key/key-chain.ts";
import { KeyHistory } from "../key/key-history.ts";
import { isBlockName, type KeyNames } from "../key/key-names.ts";
import { readKey, type ReadKey } from "../key/read-key.ts";
import { namesIn } from "../listing/walk-keys.ts";
import type { BodyPart, PutEntry } from "../model/entry.ts";
import { findParts, hasBodyFiles } from "../version/body-parts.ts";
import { versionIdOf } from "../version/find-version.ts";

/** So many slots are read at the same time. */
const readsAtOnce = 16;

/** Errors that are about the key itself. */
const unreadable = ["CORRUPT", "NEWER_FORMAT", "IO_ERROR", "INVALID_PATH", "RESOURCE_BUSY"] as const;

export interface KeyFault {
  readonly path: string;
  readonly what: string;
  readonly remedy?: string | undefined;
  /** "leftover": nothing of it counts. */
  readonly severity: "damage" | "leftover" | "note";
}

export interface CheckedKey {
  /** How many slots were read. */
  readonly checked: number;
  readonly faults: readonly KeyFault[];
  /** Whether the key cannot be used at all, so that a repair moves it away. */
  readonly isUnusable: boolean;
}

export interface BodyFault extends KeyFault {
  /** Of the version whose body it is. */
  readonly id: string;
}

type Look = ReadKey | "gone" | { readonly error: unknown };

export class KeyCheck {
  readonly #bucket: OpenBucket;
  readonly #directory: string;
  readonly #names: KeyNames;

  constructor(bucket: OpenBucket, directory: string) {
    this.#bucket = bucket;
    this.#directory = directory;
    this.#names = new KeyChain(bucket.place, directory).names;
  }

  async check(): Promise<CheckedKey> {
    const first = await this.#look();
    const look = first !== "gone" && "error" in first ? await this.#look() : first;
    if (look === "gone") return { checked: 0, faults: await this.#dying(), isUnusable: false };
    if ("error" in look) return this.#unreadable(look.error);
    const { head, versions } = look;
    const { number: checked, entry } = head;
    if (this.#bucket.layout.key(entry.key) !== this.#directory) {
      const what = `It has the entries of the key ${JSON.stringify(entry.key)}, which belongs elsewhere.`;
      return { checked: 0, faults: [this.#damage(what, "Move it away.")], isUnusable: true };
    }
    const missed: BodyFault[] = [];
    for (const version of versions)
      if (version.entry.kind === "put") missed.push(...(await this.#checkVersion(look, version.slot, version.entry)));
    const faults = [...(await this.#copies(look)), ...(await this.confirm(missed))];
    return { checked, faults, isUnusable: false };
  }

  /** As the disk has it now: what this process remembers of the key is not asked. */
  async #look(): Promise<Look> {
    const look = await this.#read();
    if (look === "gone" || !("error" in look) || !isHoldfastError(look.error, "RESOURCE_BUSY")) return look;
    const before = await this.#listing();
    const again = await this.#read();
    if (again === "gone" || !("error" in again) || (await this.#listing()) !== before) return again;
    // No other process has done anything to it: a block has lost its first slot.
    const message = `${this.#directory}: the first slot of its newest block is missing. Restore it from a backup.`;
    return { error: holdfastError("CORRUPT", message, { path: this.#directory }, again.error) };
  }

  async #read(): Promise<Look> {
    const { place } = this.#bucket;
    const chain = new KeyChain(place, this.#directory);
    try {
      return (await readKey({ chain, history: new KeyHistory(place.disk, chain.names) })) ?? "gone";
    } catch (error) {
      if (isHoldfastError(error, ...unreadable)) return { error };
      throw error;
    }
  }

  /**
   * A version goes before its body does: if it is still there after its body was missed, the body is
   * lost. Otherwise another process has removed both.
   */
  protected async confirm(missed: readonly BodyFault[]): Promise<readonly KeyFault[]> {
    if (missed.length === 0) return [];
    const look = await this.#look();
    if (look === "gone") return [];
    if ("error" in look) return this.#unreadable(look.error).faults;
    const living = new Set(look.versions.map(({ entry }) => entry.id));
    return missed.filter(({ id }) => living.has(id));
  }

  /** Its names, and those in its blocks. */
  async #listing(): Promise<string> {
    const { disk } = this.#bucket.place;
    const names = (await namesIn(disk, this.#directory)).sort();
    for (const block of names.filter(isBlockName)) names.push(...(await namesIn(disk, `${this.#directory}/${block}`)));
    return names.join("\n");
  }

  #unreadable(error: unknown): CheckedKey {
    if (isHoldfastError(error, "RESOURCE_BUSY")) {
      const what = "It changed at each of many looks, and was not verified.";
      const note = { path: this.#directory, what, remedy: "Verify it again later.", severity: "note" as const };
      return { checked: 0, faults: [note], isUnusable: false };
    }
    const { what, remedy } = describeDamage("An entry", error);
    // What a newer version wrote, or what a disk does not give out now, is not moved.
    return { checked: 0, faults: [this.#damage(what, remedy)], isUnusable: isHoldfastError(error, "CORRUPT") };
  }

  /** A key that was closed has an entry that says so, which goes last. */
  async #dying(): Promise<readonly KeyFault[]> {
    if (!(await this.#hasLostFirst())) return [];
    const what = "It has entries, and its first slot is missing: nothing in it counts.";
    const remedy = "Restore the first slot from a backup before anything is put to this key, or remove the directory.";
    return [{ path: this.#directory, what, remedy, severity: "leftover" }];
  }

  async #hasLostFirst(): Promise<boolean> {
    try {
      const entries = await findDyingEntries(this.#bucket.place.disk, this.#names);
      return entries !== undefined && entries.length > 0 && entries.every(({ kind }) => kind !== "closed");
    } catch (error) {
      if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT", "IO_ERROR")) return true;
      throw error;
    }
  }

  #damage(what: string, remedy?: string): KeyFault {
    return { path: this.#directory, what, remedy, severity: "damage" };
  }

  /** Every entry has an id of its own: two slots with one id are a slot and a copy of it. */
  async #copies({ head }: ReadKey): Promise<readonly KeyFault[]> {
    const { disk } = this.#bucket.place;
    const slots = new Map<string, string>();
    const faults: KeyFault[] = [];
    for (let first = 1; first <= head.number; first += readsAtOnce) {
      const count = Math.min(readsAtOnce, head.number - first + 1);
      const paths = Array.from({ length: count }, (_, index) => this.#names.slotPath(head.incarnation, first + index));
      const found = await Promise.all(paths.map((path) => findSlot(disk, path)));
      for (const [index, path] of paths.entries()) {
        const id = found[index]?.entry.id;
        if (id === undefined) continue;
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
    const remedy = `Restore the file from a backup, or delete the version ${versionIdOf({ slot, entry })} of ${JSON.stringify(entry.key)}: the others are not touched by this.`;
    const faults: BodyFault[] = [];
    const attempt = async <T>(file: string, subject: string, read: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await read();
      } catch (error) {
        const { what, ...found } = describeDamage(subject, error);
        faults.push({ path: file, what, remedy: found.remedy ?? remedy, severity: "damage", id: entry.id });
        return undefined;
      }
    };
    const parts = await attempt(path, "The list of its parts", () => findParts(this.#bucket, entry));
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

  async #checkBody(path: string, digest: Omit<BodyPart, "file">, offset: number | undefined): Promise<void> {
    const { disk } = this.#bucket.place;
    const file = await openIfThere(disk, path);
    if (file === undefined) throw missing(path);
    try {
      const at = offset ?? (await readSlot(file, path)).bodyAt;
      await new FileContent({ path, digest, offset: at, open: async () => file }).verify();
    } catch (error) {
      // On a share another machine has removed it since it was opened.
      throw hasErrno(error, "ESTALE") ? missing(path) : error;
    } finally {
      await file.close();
    }
  }
}

function missing(path: string): Error {
  return holdfastError("CORRUPT", `${path} is missing.`, { path });
}
