// BackupWriter puts the files of one backup into blobs. A file that an earlier backup has is not
// read again; small files share blobs.
import { createHash, hash } from "node:crypto";
import { holdfastError } from "../../errors.ts";
import { encodeRecord } from "../../format/record.ts";
import type { Clock } from "../../ports/clock.ts";
import type { DiskFile } from "../../ports/disk.ts";
import {
  blobFolder,
  blobName,
  completeFolder,
  findBlobIn,
  manifestKind,
  manifestName,
  unfinishedFolder,
  type Manifest,
} from "../manifest.ts";
import { encodeEntry, type Entry, type FileEntry, type Piece } from "../model.ts";
import { Mark } from "../target/mark.ts";
import type { BackupTarget } from "../target/target.ts";

/** A large file is cut into blobs of this size. */
const chunkBytes = 8 * 1024 * 1024;
/** Files up to this size share blobs of about `packBytes`. */
const smallBytes = 1024 * 1024;
const packBytes = 4 * 1024 * 1024;
/** After so many new bytes the unfinished backup is noted, so that the next one continues from there. */
const bytesPerCheckpoint = 64 * 1024 * 1024;
const msPerCheckpoint = 15_000;
/** About how many lines a blob of the index has. The cuts depend on the paths, so that unchanged parts are shared. */
const linesPerIndex = 2_048;
/** It is cut after a line that makes it so long, too. */
const indexBytes = 8 * 1024 * 1024;

export interface WriterOptions {
  readonly clock: Clock;
  readonly id: string;
  readonly store: string;
  /** True: reads every file, and writes every blob again. */
  readonly isFull: boolean;
  readonly onProgress: (files: number, bytes: number) => void;
  readonly signal: AbortSignal | undefined;
}

interface Pack {
  readonly parts: Uint8Array[];
  length: number;
  /** Settles the files in it, once the blob is in the target. */
  readonly waiting: ((blob: string) => void)[];
}

export class BackupWriter {
  readonly entries: Map<string, Entry> = new Map<string, Entry>();
  readonly problems: string[] = [];
  /** Files of earlier backups, by path. */
  readonly previous: Map<string, FileEntry> = new Map<string, FileEntry>();
  readonly target: BackupTarget;
  readonly #options: WriterOptions;
  readonly #mark: Mark;
  readonly #startedAtMs: number;
  /** The blobs in the target, with their sizes. */
  readonly #blobs = new Map<string, number>();
  readonly #adopted = new Set<string>();
  #pack: Pack = { parts: [], length: 0, waiting: [] };
  #fresh: FileEntry[] = [];
  #noted: string[] = [];
  #notedAtMs: number;
  #addedAtNote = 0;
  #added = 0;
  #files = 0;
  #bytes = 0;
  #noting: Promise<void> = Promise.resolve();

  constructor(target: BackupTarget, options: WriterOptions) {
    this.target = target;
    this.#options = options;
    this.#mark = new Mark(target, manifestName(unfinishedFolder, options.id), () => {
      const message = `Another process removed the mark of this backup from ${target.shown}, because it had not advanced for an hour, so it cannot become complete. Nothing was lost: back up again.`;
      return holdfastError("CLOSED", message, {});
    });
    this.#startedAtMs = options.clock.wallMs();
    this.#notedAtMs = options.clock.monotonicMs();
  }

  get id(): string {
    return this.#options.id;
  }

  /** Marks this backup as unfinished, so that nothing that it needs is pruned. */
  async begin(): Promise<void> {
    await this.#note(false);
  }

  /** Lists the blobs of the target. Call it when no prune is in progress any more: a prune may remove some of them. */
  async findBlobs(): Promise<void> {
    if (this.#options.isFull) return;
    for await (const { name, size } of this.target.list(blobFolder)) {
      const blob = findBlobIn(name);
      if (blob !== undefined) this.#blobs.set(blob, size);
    }
  }

  /** True if the target has all bytes of a file of an earlier backup. */
  hasAll({ pieces }: FileEntry): boolean {
    return pieces.every(([blob, offset, length]) => offset + length <= (this.#blobs.get(blob) ?? -1));
  }

  /** Uses the bytes that an earlier backup has. */
  reuse(entry: FileEntry): void {
    for (const [blob] of entry.pieces) this.#adopt(blob);
    this.#add(entry);
  }

  /** Adds a file with these bytes. */
  async put(path: string, bytes: Uint8Array, facts: Pick<FileEntry, "stamp" | "mode"> = {}): Promise<void> {
    const pieces: Piece[] = [];
    for (let at = 0; at < bytes.length; at += chunkBytes)
      pieces.push(await this.#packed(bytes.subarray(at, at + chunkBytes)));
    this.#add({ kind: "file", path, size: bytes.length, sha256: sha256(bytes), pieces, ...facts });
    await this.checkpoint();
  }

  /** Reads `length` bytes of a file, or all of a file that ends earlier. Returns its size and pieces. */
  async read(file: DiskFile, length: number): Promise<Pick<FileEntry, "size" | "sha256" | "pieces">> {
    const digest = createHash("sha256");
    const pieces: Piece[] = [];
    let size = 0;
    while (size < length) {
      this.#options.signal?.throwIfAborted();
      const bytes = await file.read(size, Math.min(chunkBytes, length - size));
      if (bytes.length === 0) break;
      digest.update(bytes);
      size += bytes.length;
      pieces.push(length <= smallBytes ? await this.#packed(bytes) : [await this.blob(bytes), 0, bytes.length]);
      await this.checkpoint();
    }
    return { size, sha256: digest.digest("hex"), pieces };
  }

  /** Adds what was read. */
  add(entry: Entry): void {
    if (entry.kind === "file") this.#add(entry);
    else this.entries.set(entry.path, entry);
  }

  /** Removes everything at and below a path. */
  drop(path: string): void {
    this.entries.delete(path);
    for (const each of this.entries.keys()) if (each.startsWith(`${path}/`)) this.entries.delete(each);
  }

  /** Puts a blob, unless the target has it. Returns its name. */
  async blob(bytes: Uint8Array): Promise<string> {
    const blob = sha256(bytes);
    if (this.#blobs.get(blob) === bytes.length) this.#adopt(blob);
    else {
      await this.target.put(blobName(blob), bytes);
      this.#blobs.set(blob, bytes.length);
      this.#added += bytes.length;
    }
    return blob;
  }

  /** Puts the open pack into the target, so that its pieces have their blob. */
  async flush(): Promise<void> {
    const pack = this.#pack;
    this.#pack = { parts: [], length: 0, waiting: [] };
    if (pack.length === 0) return;
    const blob = await this.blob(Buffer.concat(pack.parts));
    for (const settle of pack.waiting) settle(blob);
  }

  /** Makes the backup complete, in one step. Throws CLOSED if another process gave it up as abandoned. */
  async commit(): Promise<Manifest> {
    await this.flush();
    await this.#noting;
    const index: string[] = [];
    let lines: string[] = [];
    let length = 0;
    const cut = async (): Promise<void> => {
      if (lines.length > 0) index.push(await this.blob(Buffer.from(lines.join(""))));
      [lines, length] = [[], 0];
    };
    for (const path of [...this.entries.keys()].sort()) {
      const entry = this.entries.get(path);
      if (entry === undefined) continue;
      const line = `${encodeEntry(entry)}\n`;
      lines.push(line);
      length += line.length;
      if (lines.length >= 8 * linesPerIndex || length >= indexBytes || cutsAfter(path)) await cut();
    }
    await cut();
    const manifest = this.#manifest(index, true);
    await this.#mark.put(encodeRecord(manifestKind, manifest));
    await this.#mark.move(manifestName(completeFolder, this.id));
    return manifest;
  }

  /** Notes how far the backup is, so that the next one continues from there. */
  async note(): Promise<void> {
    this.#noting = this.#noting.then(() => this.#note(true));
    await this.#noting;
  }

  /** One sync of a folder after it was listed makes everything durable that was found in it. */
  #adopt(blob: string): void {
    const name = blobName(blob);
    const folder = name.slice(0, name.lastIndexOf("/"));
    if (!this.#adopted.has(folder)) this.target.adopt(name);
    this.#adopted.add(folder);
  }

  /** A blob with this file and others. */
  async #packed(bytes: Uint8Array): Promise<Piece> {
    if (bytes.length > packBytes / 2) return [await this.blob(bytes), 0, bytes.length];
    const pack = this.#pack;
    const offset = pack.length;
    // The piece gets the name of its blob when the pack is put. Nobody reads the name before.
    const piece: [string, number, number] = ["", offset, bytes.length];
    pack.parts.push(bytes);
    pack.length += bytes.length;
    pack.waiting.push((blob) => void (piece[0] = blob));
    if (pack.length >= packBytes) await this.flush();
    return piece;
  }

  #add(entry: FileEntry): void {
    this.entries.set(entry.path, entry);
    this.#fresh.push(entry);
    this.#files++;
    this.#bytes += entry.size;
    this.#options.onProgress(this.#files, this.#bytes);
  }

  /** Notes how far the backup is, now and then. */
  async checkpoint(): Promise<void> {
    this.#options.signal?.throwIfAborted();
    const nowMs = this.#options.clock.monotonicMs();
    const isDue = this.#added - this.#addedAtNote >= bytesPerCheckpoint || nowMs - this.#notedAtMs >= msPerCheckpoint;
    if (!isDue) return;
    this.#addedAtNote = this.#added;
    this.#notedAtMs = nowMs;
    await this.note();
  }

  async #note(hasEntries: boolean): Promise<void> {
    if (hasEntries) {
      const fresh = this.#fresh;
      this.#fresh = [];
      await this.flush();
      // Files of a pack that another caller is writing at this moment come with the next note.
      const [settled, rest] = [fresh.filter(isSettled), fresh.filter((entry) => !isSettled(entry))];
      this.#fresh.push(...rest);
      let text = "";
      for (const [index, entry] of settled.entries()) {
        text += `${encodeEntry(entry)}\n`;
        if (text.length < indexBytes && index < settled.length - 1) continue;
        this.#noted.push(await this.blob(Buffer.from(text)));
        text = "";
      }
    }
    await this.#mark.put(encodeRecord(manifestKind, this.#manifest(this.#noted, false)));
  }

  #manifest(index: readonly string[], isComplete: boolean): Manifest {
    const files = [...this.entries.values()].filter(({ kind }) => kind === "file") as FileEntry[];
    return {
      id: this.id,
      store: this.#options.store,
      startedAtMs: this.#startedAtMs,
      finishedAtMs: this.#options.clock.wallMs(),
      index,
      files: isComplete ? files.length : 0,
      bytes: isComplete ? files.reduce((sum, { size }) => sum + size, 0) : 0,
      added: this.#added,
      isComplete,
      problems: this.problems,
    };
  }
}

function isSettled({ pieces }: FileEntry): boolean {
  return pieces.every(([blob]) => blob !== "");
}

/** The same for a path in every backup, so that most blobs of two indexes are equal. */
function cutsAfter(path: string): boolean {
  return Number.parseInt(hash("sha256", path).slice(0, 6), 16) % linesPerIndex === 0;
}

export function sha256(bytes: Uint8Array): string {
  return hash("sha256", bytes);
}
