// Publishing between machines. On a share a lock on one file fences nothing about another, so a chain decides: it names who may write into which segment, and what
// was written counts when that same writer, still named, has appended the new tip. Whoever finds another named takes over in a new segment: what the other has
// written or may yet write lands where nobody reads.
import { RollingChain } from "../../durable/rolling-chain.ts";
import { growingEpochs } from "../../durable/succession.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { DiskFile } from "../../ports/disk.ts";
import { outcomeUnknown } from "../../durable/publish.ts";
import type { LogPlace } from "./place.ts";
import { TenureLost, type Publisher, type Tenure } from "./publisher.ts";
import { encodeHeader, listSegments, publishSegment, segmentPath } from "./segment.ts";
import { decodeTip, emptyTip, storedTip, type StoredTip, type Tip } from "./tip.ts";

/**
 * At least so many that a writer hardly ever sleeps through two epochs: then nothing tells whether its last append counts.
 */
const slotsMin = 256;

/** Who may write, until he publishes for the last time or somebody takes over. */
export interface Writer {
  readonly tenure: string;
  readonly holder: string;
  readonly segment: number;
}

export interface Tenures {
  readonly tip: StoredTip;
  /** The highest number that any writer was given: none is given twice. */
  readonly segments: number;
  readonly writer?: Writer;
  /** The last append to this chain: what a sleeper asks for. */
  readonly by: string;
}

const tenuresKind: RecordKind<Tenures> = {
  kind: "tenures",
  decode: (value) => {
    const { tip, segments, writer, by } = objectOf(value);
    const common = { tip: storedTip(decodeTip(tip)), segments: countOf(segments), by: textOf(by) };
    if (writer === undefined) return common;
    const { tenure, holder, segment } = objectOf(writer);
    return { ...common, writer: { tenure: textOf(tenure), holder: textOf(holder), segment: countOf(segment) } };
  },
};

export class SharePublisher implements Publisher {
  protected readonly place: LogPlace;
  readonly #chain: RollingChain<Tenures>;

  protected constructor(place: LogPlace, chain: RollingChain<Tenures>) {
    this.place = place;
    this.#chain = chain;
  }

  /** CORRUPT when there are segments and no chain that says what counts of them: to begin a new one would hide them all. */
  static async open(place: LogPlace): Promise<SharePublisher> {
    // Segments first: a chain is made before any of them, so it cannot be missing because somebody is just making both.
    const segments = await listSegments(place.disk, place.directory);
    if (segments.length > 0 && !(await place.disk.canOpen(`${place.directory}/tenures/epochs`))) {
      const path = `${place.directory}/tenures`;
      const message = `${path} is missing, which says how much of ${segments.length} segment(s) counts. Restore it from a backup; touch nothing else.`;
      throw holdfastError("CORRUPT", message, { path });
    }
    const chain = await RollingChain.open(place.staging, `${place.directory}/tenures`, {
      kind: tenuresKind,
      initial: { tip: storedTip(emptyTip), segments: 0, by: "" },
      // It slept through thousands of appends of others: whether its own was one of them is no longer written anywhere.
      counts: async ({ by }, id) => (by === id ? true : undefined),
      slotsPerEpoch: growingEpochs(slotsMin),
      bootId: place.bootId,
    });
    return new this(place, chain);
  }

  async tip(): Promise<Tip> {
    return decodeTip((await this.#chain.read()).state.tip);
  }

  async begin(): Promise<Tenure> {
    const tenure = this.place.newId();
    const holder = (await this.place.ground.life()).holder.id;
    const won = await this.#chain.append(tenure, (state) => {
      const segment = this.segmentFor(state);
      const segments = Math.max(state.segments, segment);
      return { tip: state.tip, segments, writer: { tenure, holder, segment }, by: tenure };
    });
    if (won?.state.writer === undefined) throw new Error("A change that never refuses was refused.");
    return await this.#enter(decodeTip(won.state.tip), won.state.writer);
  }

  /** With the gate in hand: who is still named is dead, or has lost the gate. What he has written, or may yet write, must not be where the next one writes. */
  protected segmentFor({ tip, segments, writer }: Tenures): number {
    return writer !== undefined || tip.segment === 0 || this.isFull(tip) ? segments + 1 : tip.segment;
  }

  isFull({ length }: Pick<Tip, "length">): boolean {
    return length >= this.place.segmentBytesMax;
  }

  protected isNamed({ writer }: Tenures, tenure: string): boolean {
    return writer?.tenure === tenure;
  }

  async close(): Promise<void> {
    // Nothing is kept open between tenures: with a kept descriptor most of a segment was read as zeros on NFS.
    await this.#chain.settled();
  }

  /** `tip` counts from now on, if `writer` is still named. False: somebody else is, so that nothing of this tenure ever counts. */
  async commit(writer: Writer, tip: Tip, isLast: boolean): Promise<boolean> {
    const by = this.place.newId();
    const path = segmentPath(this.place.directory, writer.segment);
    try {
      const won = await this.#chain.append(by, (state) => {
        if (!this.isNamed(state, writer.tenure)) return undefined;
        const next = { tip: storedTip(tip), segments: state.segments, by };
        return isLast ? next : { ...next, writer };
      });
      return won !== undefined;
    } catch (error) {
      // The request may have been done, or may still be on its way.
      if (isHoldfastError(error, "OUTCOME_UNKNOWN", "IO_ERROR")) throw outcomeUnknown(path, error);
      throw error;
    }
  }

  async #enter(tip: Tip, writer: Writer): Promise<Tenure> {
    const { disk, staging, directory } = this.place;
    const { segment } = writer;
    let begin = tip;
    if (segment !== tip.segment) {
      const header = encodeHeader(this.place.newHeader(segment, tip));
      if (!(await publishSegment(staging, directory, segment, header.bytes))) {
        const path = segmentPath(directory, segment);
        const message = `${path} is not of the writer that has its number. Touch nothing; \`holdfast events verify\` tells whether it belongs to the log.`;
        throw holdfastError("CORRUPT", message, { path });
      }
      begin = { ...tip, segment, length: header.bytes.length, crc: header.crc };
    }
    // Opened anew each time, so that this client sees what another has written.
    const file = await disk.open(segmentPath(directory, segment), "write");
    return new ShareTenure(this, { writer, file, published: tip, end: begin });
  }
}

interface ShareTenureStart {
  readonly writer: Writer;
  readonly file: DiskFile;
  readonly published: Tip;
  readonly end: Tip;
}

class ShareTenure implements Tenure {
  readonly #publisher: SharePublisher;
  readonly #writer: Writer;
  readonly #file: DiskFile;
  published: Tip;
  end: Tip;
  /** It has said that it is done, was taken over, or has written something that may never be published: then it neither writes nor says anything any more. */
  #isOver = false;

  constructor(publisher: SharePublisher, { writer, file, published, end }: ShareTenureStart) {
    this.#publisher = publisher;
    this.#writer = writer;
    this.#file = file;
    this.published = published;
    this.end = end;
  }

  get isFull(): boolean {
    return this.#publisher.isFull(this.end);
  }

  async publish(lines: Uint8Array, next: Tip, isLast: boolean): Promise<void> {
    // Before anything is written: once it has said that it is done, the next one writes in the same place.
    if (this.#isOver) throw new TenureLost("it has published for the last time");
    // A failure needs no record: what is never published never happened. But it may yet land, so nobody writes there again.
    this.#isOver = true;
    await this.#file.write(this.end.length, lines);
    await this.#file.sync();
    if (!(await this.#publisher.commit(this.#writer, next, isLast)))
      throw new TenureLost("another writer was named meanwhile");
    this.#isOver = isLast;
    this.published = this.end = next;
  }

  async close(): Promise<void> {
    // What counts was synced and published before; a close that fails takes nothing back.
    await this.#file.close().catch(() => undefined);
    if (this.#isOver) return;
    this.#isOver = true;
    // If it fails, the next one begins a new segment, and that is all.
    await this.#publisher.commit(this.#writer, this.end, true).catch(() => undefined);
  }
}
