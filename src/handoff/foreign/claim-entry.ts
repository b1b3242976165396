// A claim on foreign files: a directory of this process with a record of where the files came from.
// If this process fails, the next one completes the claim or gives the files back.
//
// 1. The directory and `origin.json` are created durably.
// 2. The signal (done file or manifest) is renamed into it: one of many adopters wins. Then the
//    files follow, one by one. Without a signal, the rename of the file itself decides.
// 3. A ticket is published from them, under a key that belongs to this claim: publishing again
//    makes no second ticket.
// 4. `origin.json` becomes `published.json`. Only then are the files removed, and the directory
//    last.
//
// A claim with all its files is completed, one without files is dropped, and one with some of them
// gives them back.
import { posix } from "node:path";
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
import { digestNames } from "./manifest-text.ts";
import type { DeclaredFile } from "../model/foreign-rule.ts";

export interface ClaimOrigin {
  /**
   * The folder, relative to the directory of all claims: machines may mount a share at different
   * paths.
   */
  readonly folder: string;
  readonly signal?: string | undefined;
  readonly files: readonly DeclaredFile[];
  /**
   * "manifest": the key is `sentKey`. "function": only a process that has the rule can compute the
   * key.
   */
  readonly key: (typeof keyWays)[number];
  /** The key given in the manifest. */
  readonly sentKey?: string | undefined;
  readonly group?: string | undefined;
  readonly meta?: unknown;
}

/**
 * An older build that does not know "manifest" leaves such a claim alone, so it hands nothing over
 * twice.
 */
const keyWays = ["claim", "content", "function", "manifest"] as const;

const originKind: RecordKind<ClaimOrigin> = {
  kind: "adopted",
  decode: (value) => {
    const { folder, signal, files, key, sentKey, group, meta } = objectOf(value);
    return {
      folder: textOf(folder),
      ...(signal === undefined ? {} : { signal: textOf(signal) }),
      files: listOf(files, (each) => {
        const { name, size, records, ...others } = objectOf(each);
        const digests = digestNames.filter((kind) => others[kind] !== undefined);
        return {
          name: textOf(name),
          ...(size === undefined ? {} : { size: countOf(size) }),
          ...Object.fromEntries(digests.map((kind) => [kind, textOf(others[kind])])),
          ...(records === undefined ? {} : { records: countOf(records) }),
        };
      }),
      key: wordOf(key, keyWays),
      ...(sentKey === undefined ? {} : { sentKey: textOf(sentKey) }),
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

/** The content of a claim's directory. */
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
  async begin(origin: ClaimOrigin): Promise<void> {
    const holder = parentOf(this.path);
    await ensureDirectory(this.disk, parentOf(holder));
    await makeUniqueDirectory(this.disk, holder);
    await makeUniqueDirectory(this.disk, this.path);
    await this.#writeOrigin(origin);
    await this.sync(this.path, holder, parentOf(holder));
  }

  /**
   * Step 2, for one file. Returns false if the file is gone because another process took it. Throws
   * LOCK_LOST, OUTCOME_UNKNOWN.
   */
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

  /** Step 4. The claim has all its files, so none can still be on the way. */
  async finish(): Promise<void> {
    if (await renameOnce(this.disk, `${this.path}/${originName}`, `${this.path}/${publishedName}`))
      await this.sync(this.path);
    await this.removePublished();
  }

  async removePublished(): Promise<void> {
    for (const name of (await findIfThere(this.disk.list(this.path))) ?? [])
      if (name !== publishedName) await this.#remove(name);
    await unlinkIfThere(this.disk, `${this.path}/${publishedName}`);
    await this.#removeDirectory();
  }

  /**
   * Drops a claim without files. Writes `origin.json` again if a delayed request has just renamed a
   * file into the claim.
   */
  async drop(origin: ClaimOrigin | undefined): Promise<void> {
    await unlinkIfThere(this.disk, `${this.path}/${originName}`);
    if (!(await this.#removeDirectory()) && origin !== undefined) await this.#writeOrigin(origin);
  }

  /**
   * Gives the files back, the signal last. Never replaces a file: if a new file has taken a name,
   * returns false, and the claim stays until the name is free.
   */
  async giveBack(origin: ClaimOrigin, folder: string): Promise<boolean> {
    for (const [index, { name }] of origin.files.entries())
      if (!(await this.#putBack(fileName(index), `${folder}/${name}`))) return false;
    // The producer has written a newer signal, which covers the same files.
    if (origin.signal !== undefined && !(await this.#putBack(signalName, `${folder}/${origin.signal}`)))
      await unlinkIfThere(this.disk, `${this.path}/${signalName}`);
    await this.drop(origin);
    return true;
  }

  /**
   * Reads the origin of the claim. Returns undefined if there is none, or if its write was
   * interrupted: then nothing was claimed.
   */
  async findOrigin(name: string = originName): Promise<ClaimOrigin | undefined> {
    try {
      return await findRecord(this.disk, originKind, `${this.path}/${name}`);
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

  async #writeOrigin(origin: ClaimOrigin): Promise<void> {
    await createUniqueFile(this.disk, `${this.path}/${originName}`, encodeRecord(originKind, origin), {
      sync: this.#isSynced,
    });
  }

  /**
   * Gives a file back by a link, which fails if the name is taken. A directory cannot be linked, so
   * it is renamed, which never replaces a file.
   */
  async #putBack(own: string, target: string): Promise<boolean> {
    const path = `${this.path}/${own}`;
    const found = await findIfThere(this.disk.look(path));
    // The file was never claimed, or was given back before.
    if (found === undefined) return true;
    if (found.kind === "directory") return await this.#renameBack(path, target);
    if (!(await linkInto(this.disk, path, target))) return false;
    await unlinkIfThere(this.disk, path);
    return true;
  }

  async #renameBack(path: string, target: string): Promise<boolean> {
    try {
      return await takeForeign(this.disk, path, target);
    } catch (error) {
      if (hasErrno(error, "EEXIST", "ENOTEMPTY", "ENOTDIR")) return false;
      throw error;
    }
  }

  /** Another program put a directory where the file was. The directory returns to the folder. */
  async #remove(name: string): Promise<void> {
    const path = `${this.path}/${name}`;
    try {
      await unlinkIfThere(this.disk, path);
    } catch (error) {
      if ((await findIfThere(this.disk.look(path)))?.kind !== "directory") throw error;
      const origin = await this.findOrigin(publishedName);
      const index = /^file-([0-9]+)$/.exec(name)?.[1];
      const own = index === undefined ? origin?.signal : origin?.files[Number(index)]?.name;
      if (origin === undefined || own === undefined) throw error;
      if (!(await this.#putBack(name, `${posix.join(parentOf(parentOf(this.path)), origin.folder)}/${own}`)))
        throw error;
    }
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
  const message = `${path} is gone: other processes judged this one dead while it adopted. They give back the files it had claimed. Adopt again.`;
  return holdfastError("LOCK_LOST", message, { path }, cause);
}
