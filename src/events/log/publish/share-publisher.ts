// Publishing between machines. On a share a lock on one file fences nothing about another, so a chain decides: it names who may write into which segment, and what
// was written counts when that same writer, still named, has appended the new tip. Whoever finds another named takes over in a new segment: what the other has
// written or may yet write lands where nobody reads.
import { RollingChain } from "../../../durable/chain/rolling-chain.ts";
import { growingEpochs } from "../../../durable/chain/epoch-rollover.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { countOf, objectOf, textOf } from "../../../format/decoding.ts";
import type { RecordKind } from "../../../format/record.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import { outcomeUnknown } from "../../../durable/publish/publish.ts";
import { mustHaveEpochs } from "../lost-log.ts";
import type { LogFiles } from "../log-files.ts";
import { TenureLost, type Publisher, type Rewriting, type Tenure } from "./publisher.ts";
import { damaged, lookAtEnd } from "../read/scan.ts";
import { encodeHeader, listSegments, openSegment, publishSegment, segmentPath } from "../format/segment.ts";
import { decodeTip, emptyTip, storedTip, type StoredTip, type Tip } from "../format/tip.ts";

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

/** What the chain said before and after a writer was named. */
interface Named {
  readonly before: Tenures;
  readonly after: Tenures;
  readonly writer: Writer;
}

export interface ShareParts {
  /** What the chain begins with where there is none. */
  readonly initial?: Tenures;
  /** The real chain, or a known-wrong variant. */
  readonly ChainClass?: typeof RollingChain;
}

export class SharePublisher implements Publisher {
  protected readonly place: LogFiles;
  readonly #chain: RollingChain<Tenures>;

  protected constructor(place: LogFiles, chain: RollingChain<Tenures>) {
    this.place = place;
    this.#chain = chain;
  }

  /** CORRUPT when there are segments and no chain that says what counts of them, or one that does not know of them all: it was put back, or they were put here. */
  static async open(place: LogFiles, parts?: ShareParts): Promise<SharePublisher> {
    const { disk, directory } = place;
    // Segments first: a chain is made before any of them, and names each of them before it is made.
    const newest = (await listSegments(disk, directory)).at(-1) ?? 0;
    if (newest > 0) await mustHaveEpochs(disk, directory);
    const publisher = await this.openAsItIs(place, parts);
    // On a share a look at the chain may be older than one at the segments: there it is told when the number is to be used.
    if (disk.volume.kind === "local" && newest > (await publisher.state()).segments) throw unnamed(place, newest);
    return publisher;
  }

  /** Makes the chain if there is none, and asks nothing. */
  static async openAsItIs(
    place: LogFiles,
    { initial = { tip: storedTip(emptyTip), segments: 0, by: "" }, ChainClass = RollingChain }: ShareParts = {},
  ): Promise<SharePublisher> {
    const chain = await ChainClass.open<Tenures>(place.staging, `${place.directory}/tenures`, {
      kind: tenuresKind,
      initial,
      // It slept through thousands of appends of others: whether its own was one of them is no longer written anywhere.
      counts: async ({ by }, id) => (by === id ? true : undefined),
      slotsPerEpoch: growingEpochs(slotsMin),
      bootId: place.bootId,
    });
    return new this(place, chain);
  }

  async tip(): Promise<Tip> {
    const { continuity } = this.place;
    return await continuity.following(async () => {
      if (!(await this.#chain.isStanding())) throw continuity.broken();
      return decodeTip((await this.state()).tip);
    });
  }

  async state(): Promise<Tenures> {
    return (await this.#chain.read()).state;
  }

  async begin(): Promise<Tenure> {
    let named: Named | undefined;
    try {
      const tip = await this.place.continuity.following(async () => {
        named = await this.#name();
        return decodeTip(named.after.tip);
      });
      if (named === undefined) throw new Error("A look was not taken.");
      return await this.#enter(tip, named.writer);
    } catch (error) {
      // Nothing was made under this number yet, and it was given by a chain that does not fit the segments: whoever comes next is told the same.
      if (named !== undefined && isHoldfastError(error, "CORRUPT", "CLOSED")) await this.#resign(named);
      throw error;
    }
  }

  async #name(): Promise<Named> {
    const tenure = this.place.newId();
    const holder = (await this.place.ground.session()).holder.id;
    let before: Tenures | undefined;
    const won = await this.#chain.append(tenure, (state) => {
      before = state;
      const segment = this.segmentFor(state);
      const segments = Math.max(state.segments, segment);
      return { tip: state.tip, segments, writer: { tenure, holder, segment }, by: tenure };
    });
    if (won?.state.writer === undefined || before === undefined)
      throw new Error("A change that never refuses was refused.");
    return { before, after: won.state, writer: won.state.writer };
  }

  /** As if this one had never been named. If it fails, the next one takes another number, as after a writer that died. */
  async #resign({ writer: { tenure }, before }: Named): Promise<void> {
    const by = this.place.newId();
    await this.#chain
      .append(by, (state) => (this.isNamed(state, tenure) ? { ...before, by } : undefined))
      .catch(() => undefined);
  }

  /** With the gate in hand: who is still named is dead, or has lost the gate. What he has written, or may yet write, must not be where the next one writes. */
  protected segmentFor({ tip, segments, writer }: Tenures): number {
    return writer !== undefined || tip.segment === 0 || this.isFull(tip) ? segments + 1 : tip.segment;
  }

  rewriting(): Rewriting {
    const tenure = this.place.newId();
    let isNamed = false;
    const move = async (change: (state: Tenures) => Omit<Tenures, "by">): Promise<Tenures> => {
      const by = this.place.newId();
      const won = await this.#chain.append(by, (state) =>
        isNamed && !this.isNamed(state, tenure) ? undefined : { ...change(state), by },
      );
      if (won === undefined) throw takenOver(this.place.directory);
      isNamed = true;
      return won.state;
    };
    return {
      next: async (least) => {
        const holder = (await this.place.ground.session()).holder.id;
        const { segments } = await move(({ tip, segments }) => {
          const segment = Math.max(segments + 1, least);
          return { tip, segments: segment, writer: { tenure, holder, segment } };
        });
        return segments;
      },
      publish: async (tip) => {
        await move(({ segments }) => ({ tip: storedTip(tip), segments: Math.max(segments, tip.segment) }));
      },
    };
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
      if (won !== undefined) this.place.continuity.reach(tip);
      return won !== undefined;
    } catch (error) {
      // The request may have been done, or may still be on its way.
      if (isHoldfastError(error, "OUTCOME_UNKNOWN", "IO_ERROR")) throw outcomeUnknown(path, error);
      throw error;
    }
  }

  async #enter(tip: Tip, writer: Writer): Promise<Tenure> {
    const isNew = writer.segment !== tip.segment;
    if (isNew && tip.segment !== 0) await (await this.#openAt(tip, "read")).close();
    const end = isNew ? await this.#startSegment(tip, writer.segment) : tip;
    return new ShareTenure(this, { writer, file: await this.#openAt(end, "write"), published: tip, end });
  }

  async #startSegment(after: Tip, segment: number): Promise<Tip> {
    const { staging, directory } = this.place;
    const header = encodeHeader(this.place.newHeader(segment, after));
    if (!(await publishSegment(staging, directory, segment, header.bytes))) throw unnamed(this.place, segment);
    return { ...after, segment, length: header.bytes.length, crc: header.crc };
  }

  /**
   * Opened anew each time, so that this client sees what another has written. CORRUPT when the tip is not there: what comes after a hole is read by nobody. Also when something stands behind it where
   * this one is to write: it goes on there only if nobody was named, and then nobody can have written what does not count.
   */
  async #openAt(tip: Tip, mode: "read" | "write"): Promise<DiskFile> {
    const { disk, directory } = this.place;
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

function takenOver(path: string): Error {
  const message = `${path}: another writer took over. Nothing has changed for those who read. Stop the programs that write to this log, and repair it again.`;
  return holdfastError("LOCK_LOST", message, { path });
}

/** For a segment whose number the chain has not given to anybody. */
function unnamed({ directory }: LogFiles, segment: number): Error {
  const path = segmentPath(directory, segment);
  const message = `${path} has a number that was given to no writer: it was put here, or ${directory}/tenures was put back to an older state. Nothing was changed. Restore the whole log into an empty directory; or keep all that is whole, and have the rest moved aside: \`holdfast events verify --repair\`.`;
  return holdfastError("CORRUPT", message, { path });
}

function putBack(path: string): Error {
  const message = `${path} has more in it than counts, and nobody can have written them there: the tenures of the log were put back to an older state. Nothing was changed. Restore the whole log into an empty directory; or keep all that is whole: \`holdfast events verify --repair\`.`;
  return holdfastError("CORRUPT", message, { path });
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
