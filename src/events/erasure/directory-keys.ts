// Subject keys in a directory: one small file per subject, decided once between all processes, and replaced by a tombstone when the subject is forgotten.
import { createHash } from "node:crypto";
import { ensureDirectory, parentOf, syncNames, unlinkIfThere } from "../../durable/publish/directory.ts";
import { linkOnce, replace } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { holdfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import type { SubjectKeys } from "../model/subject-keys.ts";
import { forgotten } from "./forgotten.ts";
import { checkSubject } from "./personal.ts";

/** The subject by its hash, so that a file that was renamed is found out. A key, or when it was forgotten. */
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
/** Only the user that the processes run as. */
const mode = 0o600;
const triesMax = 3;
/** What is remembered to be durable; beyond that, all of it is forgotten and made sure of again. */
const durableMax = 100_000;

export class DirectorySubjectKeys implements SubjectKeys {
  readonly #ports: Pick<Ports, "disk" | "random" | "clock">;
  readonly #directory: string;
  readonly #durable = new Set<string>();

  private constructor(ports: Pick<Ports, "disk" | "random" | "clock">, directory: string) {
    this.#ports = ports;
    this.#directory = directory;
  }

  /** Makes the directory if it is not there. INVALID_PATH inside a log. */
  static async open(ports: Pick<Ports, "disk" | "random" | "clock">, directory: string): Promise<DirectorySubjectKeys> {
    // As it is written before anything is made, and as it is when links are followed.
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

  /** That which is there, too. EVENT_INVALID for a subject that was forgotten. A crash leaves the key of all or none, and perhaps a temp file, which `forget` removes. */
  async create(subject: string): Promise<Uint8Array> {
    checkSubject(subject);
    const hash = hashOf(subject);
    for (let tries = 1; ; tries++) {
      const known = await this.#find(hash);
      if (known !== undefined) {
        if (known.key === undefined) throw forgotten(subject);
        await this.#makeDurable(hash);
        return Buffer.from(known.key, "base64");
      }
      if (tries > triesMax) throw this.#unseen(hash);
      // Again, because a log may have been made around the keys since.
      await checkOutsideLogs(this.#ports.disk, this.#directory);
      try {
        await this.#propose(hash);
      } catch (error) {
        // Forgotten at the same time, and with it what we were about to publish.
        if (!hasErrno(error, "ENOENT")) throw error;
      }
    }
  }

  /**
   * Durable when it resolves, and final: there is never another key for this subject. Every read that begins after it, in any process, finds the key gone. The bytes are not
   * overwritten: on flash and on copying file systems that would prove nothing.
   */
  async forget(subject: string): Promise<void> {
    checkSubject(subject);
    const { disk, random, clock } = this.#ports;
    const hash = hashOf(subject);
    if ((await this.#find(hash))?.forgottenAt === undefined) {
      const tombstone = { subject: hash, forgottenAt: new Date(clock.wallMs()).toISOString() };
      const staging = { disk, random, directory: async () => `${this.#directory}/temp` };
      // In place of the key, in one step: at no time is the name free for a new one.
      await replace(staging, this.#pathOf(hash), encodeRecord(keyKind, tombstone));
    } else await syncNames(disk, this.#directory);
    // After the tombstone: from now on nothing that is still being made can become the key.
    await this.#removeTemps(hash);
  }

  async #find(hash: string): Promise<KeyRecord | undefined> {
    const path = this.#pathOf(hash);
    const record = await findRecord(this.#ports.disk, keyKind, path);
    if (record === undefined || record.subject === hash) return record;
    const message = `${path} is the key of another subject: it was renamed or copied. Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  /** Puts a new key there unless there is one. The temp file is in a directory of its subject, so that `forget` finds what a crash has left of it. */
  async #propose(hash: string): Promise<void> {
    const { disk, random } = this.#ports;
    const directory = this.#tempsOf(hash);
    const temp = `${directory}/${randomName(random.bytes(16))}`;
    const key = Buffer.from(random.bytes(keyBytes)).toString("base64");
    const bytes = encodeRecord(keyKind, { subject: hash, key });
    await disk.mkdir(directory).catch(unlessThere);
    try {
      await disk.createFile(temp, bytes, { sync: true, mode });
      // A name that stays: whoever loses finds the winner's.
      await linkOnce(disk, temp, this.#pathOf(hash), bytes, { mayRepeat: true });
    } finally {
      // What cannot be removed now is removed when the subject is forgotten. Others may still be using the directory.
      await unlinkIfThere(disk, temp).catch(() => undefined);
      await disk.rmdir(directory).catch(() => undefined);
    }
  }

  /** Also a key that another has put there, who may not have come to his sync: what is encrypted with it must not outlive it. */
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

  /** Won or lost each time, and still not there. */
  #unseen(hash: string): Error {
    const path = this.#pathOf(hash);
    return holdfastError("IO_ERROR", `${path} was made, and is not to be seen. Try again.`, { path });
  }

  #pathOf(hash: string): string {
    return `${this.#directory}/${hash}.json`;
  }

  #tempsOf(hash: string): string {
    return `${this.#directory}/temp/${hash}`;
  }
}

/** Names of files: the same on every file system, and for any subject. */
function hashOf(subject: string): string {
  return createHash("sha256").update(subject).digest("hex");
}

function unlessThere(error: unknown): void {
  if (!hasErrno(error, "EEXIST")) throw error;
}

/** Keys inside the log would be in each of its copies and backups, and `forget` would forget nothing. INVALID_PATH. */
async function checkOutsideLogs(disk: Disk, path: string): Promise<void> {
  for (let directory = path; ; directory = parentOf(directory)) {
    if ((await disk.canOpen(`${directory}/log.json`)) && (await disk.canOpen(`${directory}/segments`))) {
      const message = `The keys cannot be in ${path}: that is inside the log ${directory}, so every copy of the log would have its keys. Choose a directory outside of it.`;
      throw holdfastError("INVALID_PATH", message, { path });
    }
    if (parentOf(directory) === directory) return;
  }
}
