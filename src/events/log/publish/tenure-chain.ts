// The chain of tenures: on a share it records how far a log is published, and which writer may write to which
// segment. A tenure begins with the state that names a writer, and ends with the first state that no longer does.
import { listIfThere } from "../../../durable/publish/directory.ts";
import { growingEpochs } from "../../../durable/chain/epoch-rollover.ts";
import { RollingChain } from "../../../durable/chain/rolling-chain.ts";
import { outcomeUnknown } from "../../../durable/publish/publish.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { countOf, objectOf, textOf } from "../../../format/decoding.ts";
import { findSlotNumber } from "../../../format/name.ts";
import type { RecordKind } from "../../../format/record.ts";
import type { Disk } from "../../../ports/disk.ts";
import { segmentPath } from "../format/segment.ts";
import { decodeTip, emptyTip, storedTip, type StoredTip, type Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import type { LogRewrite } from "./publisher.ts";

/**
 * Enough slots that a writer hardly ever sleeps through two epochs. After two, nothing shows whether its last append
 * counted.
 */
const slotsMin = 256;

/** The current writer, until it publishes for the last time or another takes over. */
export interface Writer {
  readonly tenure: string;
  readonly holder: string;
  readonly segment: number;
}

export interface Tenures {
  readonly tip: StoredTip;
  /** The highest segment number assigned to any writer: no number is assigned twice. */
  readonly segments: number;
  readonly writer?: Writer;
  /** The id of the last append to this chain, so that a writer that slept recognizes its own. */
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

/** The state before a writer was named, and the one that names it. */
export interface NamedWriter {
  readonly before: Tenures;
  readonly after: Tenures;
  readonly writer: Writer;
}

export type StateChain = Pick<RollingChain<Tenures>, "append" | "read" | "isStanding" | "settled">;
type OpenChain = (...args: Parameters<typeof RollingChain.open<Tenures>>) => Promise<StateChain>;

export interface TenureOptions {
  /** The first state of a new chain. */
  readonly initial?: Tenures;
  /** The real chain, or a faulty one for tests. */
  readonly openChain?: OpenChain;
}

export class TenureChain {
  readonly #files: LogFiles;
  readonly #chain: StateChain;

  private constructor(files: LogFiles, chain: StateChain) {
    this.#files = files;
    this.#chain = chain;
  }

  /** Creates the chain if there is none. */
  static async open(
    files: LogFiles,
    {
      initial = { tip: storedTip(emptyTip), segments: 0, by: "" },
      openChain = (...args) => RollingChain.open<Tenures>(...args),
    }: TenureOptions = {},
  ): Promise<TenureChain> {
    const chain = await openChain(files.staging, `${files.directory}/tenures`, {
      kind: tenuresKind,
      initial,
      // A writer that slept through thousands of appends finds no trace of its own, so the outcome is unknown.
      counts: async ({ by }, id) => (by === id ? true : undefined),
      slotsPerEpoch: growingEpochs(slotsMin),
      bootId: files.bootId,
    });
    return new TenureChain(files, chain);
  }

  async state(): Promise<Tenures> {
    return (await this.#chain.read()).state;
  }

  /** Returns false if the chain on disk is not the one that this process has opened. */
  async isStanding(): Promise<boolean> {
    return await this.#chain.isStanding();
  }

  async settled(): Promise<void> {
    await this.#chain.settled();
  }

  /** Names this process as the writer, in place of the current one. */
  async name(): Promise<NamedWriter> {
    const tenure = this.#files.newId();
    const holder = (await this.#files.ground.session()).holder.id;
    let before: Tenures | undefined;
    const won = await this.#chain.append(tenure, (state) => {
      before = state;
      const segment = this.#segmentFor(state);
      const segments = Math.max(state.segments, segment);
      return { tip: state.tip, segments, writer: { tenure, holder, segment }, by: tenure };
    });
    if (won?.state.writer === undefined || before === undefined)
      throw new Error("A change that never refuses was refused.");
    return { before, after: won.state, writer: won.state.writer };
  }

  /**
   * This process holds the gate. A writer that is still named is therefore dead, or has lost the gate. Its lines,
   * even late ones, must not land where the next writer writes: that one gets a new segment.
   */
  #segmentFor({ tip, segments, writer }: Tenures): number {
    return writer !== undefined || tip.segment === 0 || this.#files.isFull(tip) ? segments + 1 : tip.segment;
  }

  /** Restores the state before `name`. If that fails, the next writer gets another segment, as after a dead writer. */
  async resign({ writer: { tenure }, before }: NamedWriter): Promise<void> {
    const by = this.#files.newId();
    await this.#chain
      .append(by, (state) => (isNamed(state, tenure) ? { ...before, by } : undefined))
      .catch(() => undefined);
  }

  /**
   * The commit point: from now on `tip` counts, if `writer` is still named. Returns false if it is not: nothing that
   * it has not yet published will ever count.
   */
  async commit(writer: Writer, tip: Tip, isLast: boolean): Promise<boolean> {
    const by = this.#files.newId();
    try {
      const won = await this.#chain.append(by, (state) => {
        if (!isNamed(state, writer.tenure)) return undefined;
        const next = { tip: storedTip(tip), segments: state.segments, by };
        return isLast ? next : { ...next, writer };
      });
      if (won !== undefined) this.#files.continuity.reach(tip);
      return won !== undefined;
    } catch (error) {
      // The append may have been made, or may still be in progress.
      if (isHoldfastError(error, "OUTCOME_UNKNOWN", "IO_ERROR"))
        throw outcomeUnknown(segmentPath(this.#files.directory, writer.segment), error);
      throw error;
    }
  }

  rewriting(): LogRewrite {
    const tenure = this.#files.newId();
    let isBegun = false;
    const move = async (change: (state: Tenures) => Omit<Tenures, "by">): Promise<Tenures> => {
      const by = this.#files.newId();
      const won = await this.#chain.append(by, (state) =>
        isBegun && !isNamed(state, tenure) ? undefined : { ...change(state), by },
      );
      if (won === undefined) throw takenOver(this.#files.directory);
      isBegun = true;
      return won.state;
    };
    return {
      next: async (least) => {
        const holder = (await this.#files.ground.session()).holder.id;
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
}

function isNamed({ writer }: Tenures, tenure: string): boolean {
  return writer?.tenure === tenure;
}

/** True if the chain of tenures exists. */
export async function hasEpochs(disk: Disk, directory: string): Promise<boolean> {
  const epochs = await listIfThere(disk, `${directory}/tenures/epochs`);
  return epochs.some((name) => findSlotNumber(name) !== undefined);
}

/** For a log that has segments. Throws CORRUPT if the chain is missing: a new one would hide all segments. */
export async function mustHaveEpochs(disk: Disk, directory: string): Promise<void> {
  if (await hasEpochs(disk, directory)) return;
  const path = `${directory}/tenures`;
  const message = `${path} is gone, or has lost its epochs: it records how much of ${directory}/segments counts. Nothing was changed. Restore it from a backup of the same moment as the segments; without one, \`holdfast events verify --repair\` creates it again, and all intact lines count.`;
  throw holdfastError("CORRUPT", message, { path });
}

function takenOver(path: string): Error {
  const message = `${path}: another writer took over. Nothing has changed for readers. Stop the programs that write to this log, and repair it again.`;
  return holdfastError("LOCK_LOST", message, { path });
}
