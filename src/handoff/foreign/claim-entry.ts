// A claim on foreign files: one directory of this process with a record of where they came from, so that whatever
// happens to this process, the next one completes the claim or gives the files back.
//
// 1. The directory and `origin.json` are made, durable.
// 2. The signal (done file or manifest) is renamed into it: of many adopters one gets it. Then the files, one by one.
//    Without a signal the rename of the file itself decides.
// 3. A ticket is published from them, under a key that belongs to this claim: a second time makes no second ticket.
// 4. `origin.json` becomes `published.json`. Only then the files are removed, and the directory last.
//
// A claim with all its files is completed, one without any is dropped, and one with some of them gives them back.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { findIfThere, hasErrno } from "../../ports/disk-error.ts";
import { countOf, listOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { ensureDirectory, parentOf, syncNames, unlinkIfThere } from "../../durable/publish/directory.ts";
import { linkInto, takeForeign } from "../../durable/publish/foreign-file.ts";
import { renameOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { createUniqueFile, makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import type { Disk } from "../../ports/disk.ts";
import type { DeclaredFile } from "./rule.ts";

export interface Origin {
  /** The folder, relative to the directory of all claims: machines mount a share in different places. */
  readonly folder: string;
  readonly signal?: string | undefined;
  readonly files: readonly DeclaredFile[];
  /** "function": only the process with the rule knows it. */
  readonly key: "claim" | "content" | "function";
  readonly group?: string | undefined;
  readonly meta?: unknown;
}

const originKind: RecordKind<Origin> = {
  kind: "adopted",
  decode: (value) => {
    const { folder, signal, files, key, group, meta } = objectOf(value);
    return {
      folder: textOf(folder),
      ...(signal === undefined ? {} : { signal: textOf(signal) }),
      files: listOf(files, (each) => {
        const { name, size, sha256, records } = objectOf(each);
        return {
          name: textOf(name),
          ...(size === undefined ? {} : { size: countOf(size) }),
          ...(sha256 === undefined ? {} : { sha256: textOf(sha256) }),
          ...(records === undefined ? {} : { records: countOf(records) }),
        };
      }),
      key: wordOf(key, ["claim", "content", "function"] as const),
      ...(group === undefined ? {} : { group: textOf(group) }),
      ...(meta === undefined ? {} : { meta }),
    };
  },
};

const originName = "origin.json";
const publishedName = "published.json";
export const signalName = "signal";

export function fileName(index: number): string {
  return `file-${index}`;
}

/** What the directory of a claim has. */
export interface ClaimState {
  readonly isPublished: boolean;
  readonly hasSignal: boolean;
  readonly fileCount: number;
  readonly isEmpty: boolean;
}

export class ClaimEntry {
  readonly disk: Disk;
  readonly path: string;
  readonly #isSynced: boolean;

  constructor(disk: Disk, path: string, isSynced: boolean) {
    this.disk = disk;
    this.path = path;
    this.#isSynced = isSynced;
  }

  get id(): string {
    return this.path.slice(this.path.lastIndexOf("/") + 1);
  }

  /** Step 1. */
  async begin(origin: Origin): Promise<void> {
    const holder = parentOf(this.path);
    await ensureDirectory(this.disk, parentOf(holder));
    await makeUniqueDirectory(this.disk, holder);
    await makeUniqueDirectory(this.disk, this.path);
    await this.#writeOrigin(origin);
    await this.sync(this.path, holder, parentOf(holder));
  }

  /** Step 2, for one file: false when it is gone, so that another process has it. LOCK_LOST, OUTCOME_UNKNOWN. */
  async take(from: string, target: string): Promise<boolean> {
    const mustBeThere = async (cause: unknown): Promise<void> => {
      if ((await findIfThere(this.disk.look(this.path))) === undefined) throw takenForDead(this.path, cause);
    };
    try {
      if (await takeForeign(this.disk, from, `${this.path}/${target}`)) return true;
    } catch (error) {
      await mustBeThere(error);
      throw error;
    }
    await mustBeThere(undefined);
    return false;
  }

  /** Step 4. Nothing more can come into it: every file of the claim was there. */
  async finish(): Promise<void> {
    if (await renameOnce(this.disk, `${this.path}/${originName}`, `${this.path}/${publishedName}`))
      await this.sync(this.path);
    await this.removePublished();
  }

  async removePublished(): Promise<void> {
    for (const name of (await findIfThere(this.disk.list(this.path))) ?? [])
      if (name !== publishedName) await unlinkIfThere(this.disk, `${this.path}/${name}`);
    await unlinkIfThere(this.disk, `${this.path}/${publishedName}`);
    await this.#removeDirectory();
  }

  /** A claim that has no file. One that arrives late, by a request that was under way, stays with its origin. */
  async drop(origin: Origin | undefined): Promise<void> {
    await unlinkIfThere(this.disk, `${this.path}/${originName}`);
    if (!(await this.#removeDirectory()) && origin !== undefined) await this.#writeOrigin(origin);
  }

  /**
   * Files first, the signal last. False when a name is taken by a new file: then the claim stays, and is given back
   * when the name is free. Never replaces a file.
   */
  async giveBack(origin: Origin, folder: string): Promise<boolean> {
    for (const [index, { name }] of origin.files.entries())
      if (!(await this.#putBack(fileName(index), `${folder}/${name}`))) return false;
    // A newer signal stands for the same files.
    if (origin.signal !== undefined && !(await this.#putBack(signalName, `${folder}/${origin.signal}`)))
      await unlinkIfThere(this.disk, `${this.path}/${signalName}`);
    await this.drop(origin);
    return true;
  }

  /** Undefined when there is none, or when its write was cut short: then nothing was claimed. */
  async findOrigin(): Promise<Origin | undefined> {
    try {
      return await findRecord(this.disk, originKind, `${this.path}/${originName}`);
    } catch (error) {
      if (isHoldfastError(error, "CORRUPT") || hasErrno(error, "ESTALE")) return undefined;
      throw error;
    }
  }

  async state(): Promise<ClaimState> {
    const names = (await findIfThere(this.disk.list(this.path))) ?? [];
    const fileCount = names.filter((name) => /^file-[0-9]+$/.test(name)).length;
    const hasSignal = names.includes(signalName);
    return { isPublished: names.includes(publishedName), hasSignal, fileCount, isEmpty: fileCount === 0 && !hasSignal };
  }

  async sync(...directories: readonly string[]): Promise<void> {
    if (this.#isSynced) for (const directory of directories) await syncNames(this.disk, directory);
  }

  async #writeOrigin(origin: Origin): Promise<void> {
    await createUniqueFile(this.disk, `${this.path}/${originName}`, encodeRecord(originKind, origin), {
      sync: this.#isSynced,
    });
  }

  /** By a link, which refuses a name that is taken. */
  async #putBack(own: string, target: string): Promise<boolean> {
    const path = `${this.path}/${own}`;
    // It was never claimed, or went back before.
    if ((await findIfThere(this.disk.look(path))) === undefined) return true;
    if (!(await linkInto(this.disk, path, target))) return false;
    await unlinkIfThere(this.disk, path);
    return true;
  }

  async #removeDirectory(): Promise<boolean> {
    try {
      await this.disk.rmdir(this.path);
    } catch (error) {
      if (hasErrno(error, "ENOTEMPTY", "EEXIST")) return false;
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
    return true;
  }
}

function takenForDead(path: string, cause: unknown): Error {
  const message = `${path} is gone: other processes took this one for dead while it adopted. They give back what it had claimed. Adopt again.`;
  return holdfastError("LOCK_LOST", message, { path }, cause);
}
