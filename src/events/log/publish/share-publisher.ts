// Publishing between machines. On a share a lock on one file does not fence another file, so a chain
// decides, not the gate. The path of a batch:
//
//   1. The chain names this writer and the segment that it may write to      TenureChain.name
//   2. The segment is opened again, or a new one is published; its end must
//      be the tip
//   3. Lines are written at the end and synced
//   4. The chain gets the new tip, if this writer is still named: now the
//      lines count                                                           TenureChain.commit
//
// A writer that finds another one named takes over, in a new segment: whatever the other one has
// written, or may yet write, lands where no reader looks.
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import { encodeHeader, listSegments, openSegment, publishSegment, segmentPath } from "../format/segment.ts";
import { decodeTip, type Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { damaged, readEnd } from "../read/scan.ts";
import { WriteSessionLost, type Publisher, type LogRewrite, type WriteSession } from "./publisher.ts";
import { mustHaveEpochs, TenureChain, type NamedWriter, type TenureOptions, type Writer } from "./tenure-chain.ts";

export class SharePublisher implements Publisher {
  protected readonly files: LogFiles;
  readonly #tenures: TenureChain;

  protected constructor(files: LogFiles, tenures: TenureChain) {
    this.files = files;
    this.#tenures = tenures;
  }

  /**
   * Throws CORRUPT for segments without a chain, and for a chain that does not know all segments: one of the two was
   * restored from an older state.
   */
  static async open(files: LogFiles, options?: TenureOptions): Promise<SharePublisher> {
    const { disk, directory } = files;
    // List segments first: the chain is created before any of them, and assigns each number before its segment is
    // created.
    const newest = (await listSegments(disk, directory)).at(-1) ?? 0;
    if (newest > 0) await mustHaveEpochs(disk, directory);
    const tenures = await TenureChain.open(files, options);
    // On a share the cached chain may be older than the list of segments. There the number is checked when it is
    // used.
    if (disk.volume.kind === "local" && newest > (await tenures.state()).segments) throw unnamed(files, newest);
    return new this(files, tenures);
  }

  /** Creates the chain if there is none. Checks nothing. */
  static async openAsItIs(files: LogFiles, options?: TenureOptions): Promise<SharePublisher> {
    return new this(files, await TenureChain.open(files, options));
  }

  async tip(): Promise<Tip> {
    const { continuity } = this.files;
    return await continuity.following(async () => {
      if (!(await this.#tenures.isStanding())) throw continuity.broken();
      return decodeTip((await this.#tenures.state()).tip);
    });
  }

  async begin(): Promise<WriteSession> {
    let named: NamedWriter | undefined;
    try {
      const tip = await this.files.continuity.following(async () => {
        named = await this.#tenures.name();
        return decodeTip(named.after.tip);
      });
      if (named === undefined) throw new Error("A look was not taken.");
      return await this.#enter(tip, named.writer);
    } catch (error) {
      // The chain does not match the segments. Nothing was created under this number, so resign: the next writer gets
      // the same error.
      if (named !== undefined && isHoldfastError(error, "CORRUPT", "CLOSED")) await this.#tenures.resign(named);
      throw error;
    }
  }

  rewriting(): LogRewrite {
    return this.#tenures.rewriting();
  }

  async close(): Promise<void> {
    // No file stays open between sessions: on NFS, an open one read most of a segment as zeros.
    await this.#tenures.settled();
  }

  async #enter(tip: Tip, writer: Writer): Promise<WriteSession> {
    const isNew = writer.segment !== tip.segment;
    if (isNew && tip.segment !== 0) await (await this.#openAt(tip, "read")).close();
    const end = isNew ? await this.#startSegment(tip, writer.segment) : tip;
    const file = await this.#openAt(end, "write");
    return new ShareSession(this.files, this.#tenures, { writer, file, published: tip, end });
  }

  async #startSegment(after: Tip, segment: number): Promise<Tip> {
    const { staging, directory } = this.files;
    const header = encodeHeader(this.files.newHeader(segment, after));
    if (!(await publishSegment(staging, directory, segment, header.bytes))) throw unnamed(this.files, segment);
    return { ...after, segment, length: header.bytes.length, crc: header.crc };
  }

  /**
   * Opens the file again each time, so that this client sees what others have written. Throws CORRUPT if the file is
   * shorter than the tip: a reader must not continue past a hole. For writing, it also throws if bytes follow the
   * tip: this writer continues the segment only if no writer was named, and then none can have written there.
   */
  async #openAt(tip: Tip, mode: "read" | "write"): Promise<DiskFile> {
    const { disk, directory } = this.files;
    const path = segmentPath(directory, tip.segment);
    const file = await openSegment(disk, directory, tip.segment, mode);
    try {
      const { stands, next } = await readEnd(file, tip);
      if (!stands) throw damaged(path, Math.min((await file.stat()).size, tip.length));
      if (mode === "write" && next !== undefined) throw putBack(path);
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }
}

/** Returns the error for a segment whose number the chain has assigned to no writer. */
function unnamed({ directory }: LogFiles, segment: number): Error {
  const path = segmentPath(directory, segment);
  const message = `${path} has a number that no writer was assigned: it was copied here, or ${directory}/tenures was restored to an older state. Nothing was changed. Restore the whole log into an empty directory; or keep what is intact, and move the rest aside: \`holdfast events verify --repair\`.`;
  return holdfastError("CORRUPT", message, { path });
}

function putBack(path: string): Error {
  const message = `${path} has bytes after the published end that no writer can have written: the tenures of the log were restored to an older state. Nothing was changed. Restore the whole log into an empty directory; or keep what is intact: \`holdfast events verify --repair\`.`;
  return holdfastError("CORRUPT", message, { path });
}

interface ShareSessionStart {
  readonly writer: Writer;
  readonly file: DiskFile;
  readonly published: Tip;
  readonly end: Tip;
}

class ShareSession implements WriteSession {
  readonly #files: LogFiles;
  readonly #tenures: TenureChain;
  readonly #writer: Writer;
  readonly #file: DiskFile;
  published: Tip;
  end: Tip;
  /**
   * Set once the session has published for the last time, lost its tenure, or written lines that may never be
   * published.
   */
  #isOver = false;

  constructor(files: LogFiles, tenures: TenureChain, { writer, file, published, end }: ShareSessionStart) {
    this.#files = files;
    this.#tenures = tenures;
    this.#writer = writer;
    this.#file = file;
    this.published = published;
    this.end = end;
  }

  get isFull(): boolean {
    return this.#files.isFull(this.end);
  }

  async publish(lines: Uint8Array, next: Tip, isLast: boolean): Promise<void> {
    // Check before writing: after its last publish, the next writer writes at the same offset.
    if (this.#isOver) throw new WriteSessionLost("it has published for the last time");
    // Set it before the write: if that fails, the lines may arrive late, so nothing else is written here. They are
    // never published, so there is nothing to undo.
    this.#isOver = true;
    await this.#file.write(this.end.length, lines);
    await this.#file.sync();
    if (!(await this.#tenures.commit(this.#writer, next, isLast)))
      throw new WriteSessionLost("another writer was named meanwhile");
    this.#isOver = isLast;
    this.published = this.end = next;
  }

  async close(): Promise<void> {
    // Published lines were synced before, so a failed close loses nothing.
    await this.#file.close().catch(() => undefined);
    if (this.#isOver) return;
    this.#isOver = true;
    // If this fails, the next writer only begins a new segment.
    await this.#tenures.commit(this.#writer, this.end, true).catch(() => undefined);
  }
}
