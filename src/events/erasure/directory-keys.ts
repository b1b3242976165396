// Subject keys in a directory: one small file per subject, decided once among all processes, and
// replaced by a tombstone when the subject is forgotten.
import { ensureDirectory, isTop, parentOf, syncNames, unlinkIfThere } from "../../durable/publish/directory.ts";
import { linkOnce, replace } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { holdfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import type { SubjectKeys } from "../model/event-store.ts";
import { forgottenSubject, checkSubject } from "./personal.ts";
import { sha256Of } from "../../format/checksum.ts";

/** The key, or the time when it was forgotten. The hash of the subject reveals a renamed file. */
interface KeyRecord {
  readonly subject: string;
  readonly key?: string;
  readonly forgottenAt?: string;
}

const keyKind: RecordKind<KeyRecord> = {
  kind: "subject-key",
  decode: (value) => {
    const { subject, key, forgottenAt } = objectOf(value);
    if (forgottenAt !== undefined) return { subject: textOf(subject), forgottenAt: textOf(forgottenAt) };
    if (Buffer.from(textOf(key), "base64").length !== keyBytes) throw new TypeError("not a key");
    return { subject: textOf(subject), key: textOf(key) };
  },
};

const keyBytes = 32;
/** Readable only for the user account that runs the processes. */
const mode = 0o600;
const triesMax = 3;
/** Number of keys remembered as durable. Beyond that the set is cleared, and keys are synced again. */
const durableMax = 100_000;

export class DirectorySubjectKeys implements SubjectKeys {
  readonly #ports: Pick<Ports, "disk" | "random" | "clock">;
  readonly #directory: string;
  readonly #durable = new Set<string>();

  private constructor(ports: Pick<Ports, "disk" | "random" | "clock">, directory: string) {
    this.#ports = ports;
    this.#directory = directory;
  }

  /** Creates the directory if it does not exist. Throws INVALID_PATH inside a log. */
  static async open(ports: Pick<Ports, "disk" | "random" | "clock">, directory: string): Promise<DirectorySubjectKeys> {
    // Checked as given, before anything is created, and again with links followed.
    await checkOutsideLogs(ports.disk, directory);
    await ensureDirectory(ports.disk, `${directory}/temp`);
    const keys = new DirectorySubjectKeys(ports, await ports.disk.realPath(directory));
    await checkOutsideLogs(ports.disk, keys.#directory);
    return keys;
  }

  async find(subject: string): Promise<Uint8Array | undefined> {
    const record = await this.#find(hashOf(subject));
    return record?.key === undefined ? undefined : Buffer.from(record.key, "base64");
  }

  /**
   * Returns the existing key, if any. Throws EVENT_INVALID for a forgotten subject. A crash leaves a whole key or
   * none, and perhaps a temp file, which `forget` removes.
   */
  async create(subject: string): Promise<Uint8Array> {
    checkSubject(subject);
    const hash = hashOf(subject);
    for (let tries = 1; ; tries++) {
      const known = await this.#find(hash);
      if (known !== undefined) {
        if (known.key === undefined) throw forgottenSubject(subject);
        await this.#makeDurable(hash);
        return Buffer.from(known.key, "base64");
      }
      if (tries > triesMax) throw this.#unseen(hash);
      // Check again: a log may have been created around the keys since they were opened.
      await checkOutsideLogs(this.#ports.disk, this.#directory);
      try {
        await this.#propose(hash);
      } catch (error) {
        // A concurrent `forget` removed the temp directory.
        if (!hasErrno(error, "ENOENT")) throw error;
      }
    }
  }

  /**
   * Durable once it resolves, and final: this subject never gets another key, and every later read in any process
   * finds the key gone. The bytes are not overwritten: on flash and on copy-on-write file systems that would prove
   * nothing.
   */
  async forget(subject: string): Promise<void> {
    checkSubject(subject);
    const { disk, random, clock } = this.#ports;
    const hash = hashOf(subject);
    if ((await this.#find(hash))?.forgottenAt === undefined) {
      const tombstone = { subject: hash, forgottenAt: new Date(clock.wallMs()).toISOString() };
      const staging = { disk, random, directory: async () => `${this.#directory}/temp` };
      // One rename over the key: at no moment could another process create a key under this name.
      await replace(staging, this.#pathOf(hash), encodeRecord(keyKind, tombstone));
    } else await syncNames(disk, this.#directory);
    // After the tombstone, because a temp file can then no longer become the key.
    await this.#removeTemps(hash);
  }

  async #find(hash: string): Promise<KeyRecord | undefined> {
    const path = this.#pathOf(hash);
    const record = await findRecord(this.#ports.disk, keyKind, path);
    if (record === undefined || record.subject === hash) return record;
    const message = `${path} has the key of another subject: the file was renamed or copied. Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  /**
   * Creates a key unless there is one. The temp file is in a directory of its subject, so that
   * `forget` finds what a crash left.
   */
  async #propose(hash: string): Promise<void> {
    const { disk, random } = this.#ports;
    const directory = this.#tempsOf(hash);
    const temp = `${directory}/${randomName(random.bytes(16))}`;
    const key = Buffer.from(random.bytes(keyBytes)).toString("base64");
    const bytes = encodeRecord(keyKind, { subject: hash, key });
    await disk.mkdir(directory).catch(unlessThere);
    try {
      await disk.createFile(temp, bytes, { sync: true, mode });
      // A name is linked once and permanently: a process that loses the race finds the winner's key.
      await linkOnce(disk, temp, this.#pathOf(hash), bytes, { mayRepeat: true });
    } finally {
      // If the removal fails now, `forget` removes the file later. Another process may still use the directory.
      await unlinkIfThere(disk, temp).catch(() => undefined);
      await disk.rmdir(directory).catch(() => undefined);
    }
  }

  /**
   * Also syncs a key of another process, which may have died before its sync: no encrypted data may
   * outlive its key.
   */
  async #makeDurable(hash: string): Promise<void> {
    if (this.#durable.has(hash)) return;
    await syncNames(this.#ports.disk, this.#directory);
    if (this.#durable.size >= durableMax) this.#durable.clear();
    this.#durable.add(hash);
  }

  async #removeTemps(hash: string): Promise<void> {
    const { disk } = this.#ports;
    const directory = this.#tempsOf(hash);
    try {
      for (const name of await disk.list(directory)) await unlinkIfThere(disk, `${directory}/${name}`);
      await disk.rmdir(directory);
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST")) throw error;
    }
    await syncNames(disk, parentOf(directory));
  }

  /** Returns the error for a key that cannot be found after several tries. */
  #unseen(hash: string): Error {
    const path = this.#pathOf(hash);
    return holdfastError("IO_ERROR", `${path} was created, but cannot be found. Try again.`, { path });
  }

  #pathOf(hash: string): string {
    return `${this.#directory}/${hash}.json`;
  }

  #tempsOf(hash: string): string {
    return `${this.#directory}/temp/${hash}`;
  }
}

/** A file name for any subject, valid on every file system. */
function hashOf(subject: string): string {
  return sha256Of(subject);
}

function unlessThere(error: unknown): void {
  if (!hasErrno(error, "EEXIST")) throw error;
}

/**
 * Throws INVALID_PATH inside a log: every copy and backup of the log would include its keys, and
 * `forget` would be useless.
 */
async function checkOutsideLogs(disk: Disk, path: string): Promise<void> {
  for (let directory = path; ; directory = parentOf(directory)) {
    if ((await disk.canOpen(`${directory}/log.json`)) && (await disk.canOpen(`${directory}/segments`))) {
      const message = `The keys cannot be in ${path}: it is inside the log ${directory}, so every copy of the log would include its keys. Choose a directory outside the log.`;
      throw holdfastError("INVALID_PATH", message, { path });
    }
    if (isTop(disk, directory)) return;
  }
}
