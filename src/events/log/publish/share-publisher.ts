// Publishing between machines. On a share a lock on one file fences nothing about another file, so
// a chain decides, not the gate. The way of a batch:
//
//   1. The chain names this writer and the segment that it may write into    TenureChain.name
//   2. The segment is opened anew, or a new one is published; its end must
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
import { damaged, lookAtEnd } from "../read/scan.ts";
import { WriteSessionLost, type Publisher, type Rewriting, type WriteSession } from "./publisher.ts";
import { mustHaveEpochs, TenureChain, type Named, type TenureOptions, type Writer } from "./tenure-chain.ts";

export class SharePublisher implements Publisher {
  protected readonly files: LogFiles;
  readonly #tenures: TenureChain;

  protected constructor(files: LogFiles, tenures: TenureChain) {
    this.files = files;
    this.#tenures = tenures;
  }

  /**
   * CORRUPT for segments without a chain, and for a chain that does not know all of them: one of
   * the two was put back.
   */
  static async open(files: LogFiles, options?: TenureOptions): Promise<SharePublisher> {
    const { disk, directory } = files;
    // Segments first: the chain is made before any of them, and gives each its number before it is
    // made.
    const newest = (await listSegments(disk, directory)).at(-1) ?? 0;
    if (newest > 0) await mustHaveEpochs(disk, directory);
    const tenures = await TenureChain.open(files, options);
    // On a share the view of the chain may be older than that of the segments: there the number is
    // checked when it is used.
    if (disk.volume.kind === "local" && newest > (await tenures.state()).segments) throw unnamed(files, newest);
    return new this(files, tenures);
  }

  /** Makes the chain if there is none. Checks nothing. */
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
    let named: Named | undefined;
    try {
      const tip = await this.files.continuity.following(async () => {
        named = await this.#tenures.name();
        return decodeTip(named.after.tip);
      });
      if (named === undefined) throw new Error("A look was not taken.");
      return await this.#enter(tip, named.writer);
    } catch (error) {
      // The chain does not fit the segments. Nothing was made under this number, and the next
      // writer gets the same error.
      if (named !== undefined && isHoldfastError(error, "CORRUPT", "CLOSED")) await this.#tenures.resign(named);
      throw error;
    }
  }

  rewriting(): Rewriting {
    return this.#tenures.rewriting();
  }

  async close(): Promise<void> {
    // No descriptor is kept between sessions: with a kept one most of a segment was read as zeros
    // on NFS.
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
   * Opened anew each time, so that this client sees what another has written. CORRUPT when the tip
   * is not there: no reader passes a hole. Also when bytes stand behind it where this writer is to
   * write: it goes on there only if no writer was named, and then none can have written them.
   */
  async #openAt(tip: Tip, mode: "read" | "write"): Promise<DiskFile> {
    const { disk, directory } = this.files;
    const path = segmentPath(directory, tip.segment);
    const file = await openSegment(disk, directory, tip.segment, mode);
    try {
      const { stands, next } = await lookAtEnd(file, tip);
      if (!stands) throw damaged(path, Math.min((await file.stat()).size, tip.length));
      if (mode === "write" && next !== undefined) throw putBack(path);
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }
}

/** For a segment with a number that the chain has given to no writer. */
function unnamed({ directory }: LogFiles, segment: number): Error {
  const path = segmentPath(directory, segment);
  const message = `${path} has a number that was given to no writer: it was put here, or ${directory}/tenures was put back to an older state. Nothing was changed. Restore the whole log into an empty directory; or keep all that is whole, and have the rest moved aside: \`holdfast events verify --repair\`.`;
  return holdfastError("CORRUPT", message, { path });
}

function putBack(path: string): Error {
  const message = `${path} has more in it than counts, and no writer can have written that: the tenures of the log were put back to an older state. Nothing was changed. Restore the whole log into an empty directory; or keep all that is whole: \`holdfast events verify --repair\`.`;
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
   * It has published for the last time, lost its tenure, or written lines that may never be
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
    // Before anything is written: after the last publish the next writer writes at the same offset.
    if (this.#isOver) throw new WriteSessionLost("it has published for the last time");
    // After a failure the lines may land late, so nothing else is written here. They are never
    // published: nothing to undo.
    this.#isOver = true;
    await this.#file.write(this.end.length, lines);
    await this.#file.sync();
    if (!(await this.#tenures.commit(this.#writer, next, isLast)))
      throw new WriteSessionLost("another writer was named meanwhile");
    this.#isOver = isLast;
    this.published = this.end = next;
  }

  async close(): Promise<void> {
    // What counts was synced and published before: a failed close takes nothing back.
    await this.#file.close().catch(() => undefined);
    if (this.#isOver) return;
    this.#isOver = true;
    // If it fails, the next writer only begins a new segment.
    await this.#tenures.commit(this.#writer, this.end, true).catch(() => undefined);
  }
}
