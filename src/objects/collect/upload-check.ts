// UploadCheck verifies and repairs uploads: their records, and the parts of uploads in progress.
import { isHoldfastError, type HoldfastError } from "../../errors.ts";
import { idTimeMs } from "../../format/id.ts";
import { moveAside, type AsideDirectory } from "../../part/aside.ts";
import { FileContent } from "../../part/content.ts";
import { describeUnreadable } from "../../part/findings.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { PutEntry } from "../model/entry.ts";
import { bodyPartsOf, joinEtags } from "../multipart/complete-upload.ts";
import { UploadFiles } from "../multipart/upload-files.ts";
import type { CompletionRecord, UploadEnd, UploadRecord } from "../multipart/upload-records.ts";

export interface UploadFault {
  readonly path: string;
  readonly what: string;
  readonly remedy: string;
  readonly isRepaired: boolean;
  /** False if a repair restored the upload completely. */
  readonly isLost: boolean;
}

interface Fault {
  readonly path: string;
  readonly what: string;
  readonly remedy: string | undefined;
  readonly error?: HoldfastError;
}

const restore = "Restore the file from a backup";

/** Checks one upload. With `isRepair`, sets aside what is unreadable. */
export class UploadCheck {
  readonly #bucket: OpenBucket;
  readonly #files: UploadFiles;
  readonly #version: PutEntry | undefined;
  readonly #isRepair: boolean;

  /** `version` is the version that uses the files of the upload. */
  constructor(bucket: OpenBucket, id: string, version: PutEntry | undefined, isRepair: boolean) {
    this.#bucket = bucket;
    this.#files = new UploadFiles(bucket, id);
    this.#version = version;
    this.#isRepair = isRepair;
  }

  async check(): Promise<readonly UploadFault[]> {
    const record = await this.#files.findOrDamage();
    const end = await this.#files.findEndOrDamage();
    if (this.#version !== undefined) return await this.#checkCompleted(this.#version, record, end);
    if (record === undefined) return [];
    if ("error" in record) return [await this.#setAside(this.#files.recordPath, record.error, end)];
    if (end === undefined) return await this.#checkParts();
    return "error" in end ? [await this.#setAside(this.#files.endPath, end.error, end)] : [];
  }

  /** A version uses the files, so the records can be restored from that version and its parts. */
  async #checkCompleted(
    version: PutEntry,
    record: Awaited<ReturnType<UploadFiles["findOrDamage"]>>,
    end: Awaited<ReturnType<UploadFiles["findEndOrDamage"]>>,
  ): Promise<readonly UploadFault[]> {
    const faults: UploadFault[] = [];
    const { recordPath, endPath } = this.#files;
    const remedy = `${restore}, or repair the store, which restores it.`;
    const made = { isLost: false, done: "It was restored from the version. Nothing is left to do." };
    if (record !== undefined && "error" in record)
      faults.push(
        await this.#mend({ ...this.#describe(recordPath, "The record of an upload", record.error), remedy }, made, () =>
          this.#files.writeAgain({ record: recordOf(this.#files.id, version) }),
        ),
      );
    // The record of an upload is removed before its end. So if the record exists and the end is
    // missing, the end was lost.
    const isEndLost = end === undefined ? await this.#files.isThere() : "error" in end;
    if (isEndLost) {
      const what =
        end !== undefined && "error" in end
          ? this.#describe(endPath, "The end of an upload", end.error)
          : { path: endPath, what: "The end of an upload is missing, although its version exists." };
      faults.push(
        await this.#mend({ ...what, remedy }, made, async () => {
          const again = await this.#completionOf(version);
          if (again === undefined) return false;
          await this.#files.writeAgain({ end: again });
          return true;
        }),
      );
    }
    return faults;
  }

  /**
   * Rebuilds the end of an upload from its version, or from the records of the parts if the version
   * does not name them.
   */
  async #completionOf({ id, size, etag, checksum, parts }: PutEntry): Promise<CompletionRecord | undefined> {
    const own = { kind: "complete" as const, id, behind: { incarnation: "", number: 0 }, list: "", size, etag };
    const rest = checksum === undefined ? own : { ...own, checksum };
    if (parts !== undefined) return { ...rest, parts };
    const found = await this.#files.parts();
    const isSame = joinEtags(found) === etag && found.reduce((sum, part) => sum + part.size, 0) === size;
    return isSame ? { ...rest, parts: bodyPartsOf(found, checksum?.algorithm) } : undefined;
  }

  async #checkParts(): Promise<readonly UploadFault[]> {
    const faults: UploadFault[] = [];
    for (const number of await this.#files.partNumbers()) {
      const path = this.#files.partPath(number);
      const fault = await this.#partFault(number, path);
      if (fault === undefined) continue;
      const done = `It was moved to ${this.#bucket.layout.aside}. Upload part ${number} again before the upload is completed.`;
      faults.push(await this.#mend(fault, { isLost: true, done }, () => moveAside(this.#aside, path)));
    }
    return faults;
  }

  async #partFault(number: number, path: string): Promise<Fault | undefined> {
    const remedy = `Upload part ${number} again, or repair the store, which sets it aside.`;
    let file = path;
    try {
      const part = await this.#files.findPart(number);
      if (part === undefined) return undefined;
      file = this.#bucket.bodyPath(part.file);
      const { disk } = this.#bucket.storage;
      await new FileContent({
        path: file,
        digest: part,
        open: () => disk.open(file, "read", { isBulk: true }),
      }).verify();
      return undefined;
    } catch (error) {
      // The upload was aborted or completed meanwhile, or the part was uploaded again.
      const again = await this.#files.findPart(number).catch(() => undefined);
      if (hasErrno(error, "ENOENT") && !(again !== undefined && this.#bucket.bodyPath(again.file) === file))
        return undefined;
      if ((await this.#files.findEndOrDamage()) !== undefined) return undefined;
      return { ...this.#describe(file, `Part ${number} of an upload`, error), remedy };
    }
  }

  /** Handles an upload that can only be aborted. */
  async #setAside(
    path: string,
    error: HoldfastError,
    end: UploadEnd | { readonly error: HoldfastError } | undefined,
  ): Promise<UploadFault> {
    const remedy = `${restore}, abort the upload ${this.#files.id}, or repair the store, which sets it aside.`;
    const fault = { ...this.#describe(path, `The upload ${this.#files.id}`, error), remedy };
    const done = `The upload was moved to ${this.#bucket.layout.aside}. Upload the object again.`;
    return await this.#mend(fault, { isLost: true, done }, async () => {
      if (end !== undefined && "error" in end) {
        // The record must be readable: only the key that it names tells whether the upload was
        // completed.
        return (
          (await this.#files.find().catch(() => undefined)) !== undefined &&
          (await this.#files.moveAway()) !== undefined
        );
      }
      // After this abort, the upload cannot be completed.
      if (end?.kind === "complete" || !(await this.#files.endByAbort())) return false;
      return await moveAside(this.#aside, this.#files.directory);
    });
  }

  async #mend(
    { path, what, remedy = `${restore}.`, error }: Fault,
    { isLost, done }: { readonly isLost: boolean; readonly done: string },
    mend: () => Promise<boolean | void>,
  ): Promise<UploadFault> {
    // Leaves files alone that another release or another user can read.
    const isMendable = error === undefined || !isHoldfastError(error, "NEWER_FORMAT", "NO_PERMISSION");
    const isRepaired = this.#isRepair && isMendable && (await mend()) !== false;
    return { path, what, remedy: isRepaired ? done : remedy, isRepaired, isLost: isLost || !isRepaired };
  }

  #describe(path: string, subject: string, error: unknown): Omit<Fault, "remedy"> {
    const { what } = describeUnreadable(subject, error);
    return isHoldfastError(error) ? { path, what, error } : { path, what };
  }

  get #aside(): AsideDirectory {
    const { storage, layout } = this.#bucket;
    return { disk: storage.disk, directory: layout.directory, newId: () => storage.newId() };
  }
}

/** Restores, as far as possible, the record of the upload that became this version. */
function recordOf(id: string, { key, headers, metadata, tags, retention, legalHold, acl }: PutEntry): UploadRecord {
  const facts = {
    headers,
    metadata,
    tags,
    ...(retention === undefined ? {} : { retention }),
    ...(legalHold === undefined ? {} : { legalHold }),
    ...(acl === undefined ? {} : { acl }),
  };
  return { id, key, startedAtMs: idTimeMs(id), facts };
}
