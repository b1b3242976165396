// Publishing on one machine: an OS lock cannot be lost by a living process, and a dead process
// writes nothing, so the holder of the gate may write in place. The way of a batch:
//
//   1. The writer has the gate, and finds the end: by the head, or after a
//      restart by the segments                                               recovery.ts
//   2. Bytes behind that end are in doubt: whole lines are saved, and the
//      log goes on in a new segment                                          recovery.ts
//   3. A segment that is full, or that another writer may be at work in, is
//      followed by a new one                                                 log-tail.ts
//   4. Lines are written at the end and synced; a failure ends the segment   log-tail.ts
//   5. The head is written in place: now the lines count                     local-session.ts
//
// A lock file that is deleted under its holder lets a second writer in. The second one begins a new
// segment, because its lock file is not the one that the head names, so the two never write into
// one segment. The first one looks for its lock file after it has written the head, and
// acknowledges nothing if it is gone. It also looks before it begins a segment: what it knows of
// the end is then what the second one finds, too, and only one of them can make that segment.
import type { Hold } from "../../../common.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { isUnwritable } from "../../../ports/disk-error.ts";
import { emptyTip, type Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { HeadFile } from "./head-file.ts";
import { LocalSession } from "./local-session.ts";
import { LogTail, SegmentTaken } from "./log-tail.ts";
import { PublishedEnd } from "./published-end.ts";
import type { Publisher, Rewriting, WriterGate, WriteSession } from "./publisher.ts";
import { Recovery } from "./recovery.ts";

type TryGate = () => Promise<(WriterGate & Hold) | undefined>;

/** How often in a row another writer may begin the segment that this one was to begin. */
const takeoversMax = 3;

/** The real classes, or known-wrong variants. */
export interface LocalParts {
  readonly EndClass?: typeof PublishedEnd;
  readonly TailClass?: typeof LogTail;
  readonly RecoveryClass?: typeof Recovery;
}

export class LocalPublisher implements Publisher {
  readonly #files: LogFiles;
  readonly #headFile: HeadFile;
  readonly #end: PublishedEnd;
  readonly #tail: LogTail;
  readonly #recovery: Recovery;
  /** Set while another writer has the gate and the head is still the one of before a restart. */
  #tryGate: TryGate | undefined;

  constructor(
    files: LogFiles,
    { EndClass = PublishedEnd, TailClass = LogTail, RecoveryClass = Recovery }: LocalParts = {},
  ) {
    this.#files = files;
    this.#headFile = new HeadFile(files.disk, `${files.directory}/head`);
    this.#end = new EndClass(files, this.#headFile);
    this.#tail = new TailClass(files, this.#headFile);
    this.#recovery = new RecoveryClass(files, this.#tail, this.#end);
  }

  async tip(): Promise<Tip> {
    if (this.#tryGate !== undefined) await this.settle(this.#tryGate);
    const isHeadAlone = this.#tryGate !== undefined;
    return await this.#files.continuity.following(() => this.#end.tip({ isHeadAlone, lockId: this.#tail.lockId }));
  }

  /**
   * Called before the first `tip`: replaces a head that may be older than a restart, and takes up
   * lines that a dead writer left behind the head, or that a restored head does not name.
   *
   * Only under the gate: boot ids that differ do not prove a restart (a container may have its
   * own), and the lines behind the head may be those of a living writer. While another writer has
   * the gate, the head alone counts: that writer has published it, or is about to publish another
   * one.
   */
  async settle(tryGate: TryGate): Promise<void> {
    this.#tryGate = undefined;
    const head = await this.#end.findHead();
    const isBelieved = head !== undefined && this.#end.isBelieved(head);
    const isSettled = isBelieved
      ? !(await this.#recovery.hasMore(head.tip))
      : head === undefined && !(await this.#recovery.hasMore(emptyTip));
    if (isSettled) return;
    // Its lines can be shown while another writer has the gate.
    const isShowable = head !== undefined && (head.isSynced || head.boot === this.#files.bootId);
    const again = isShowable && !isBelieved ? tryGate : undefined;
    let gate: (WriterGate & Hold) | undefined;
    try {
      gate = await tryGate();
      if (gate === undefined) this.#tryGate = again;
      else {
        this.#tail.enter(gate);
        await this.#recovery.settle();
      }
    } catch (error) {
      // The lock file was deleted, and another writer is inside: it recovers the log.
      if (error instanceof SegmentTaken || (isHoldfastError(error, "LOCK_LOST") && isShowable)) this.#tryGate = again;
      // A process that cannot write can still read all that parses, as after a restart.
      else if (!isUnwritable(error)) throw error;
    } finally {
      await gate?.release();
    }
  }

  async begin(gate: WriterGate): Promise<WriteSession> {
    this.#tail.enter(gate);
    for (let tries = 1; ; tries++)
      try {
        return new LocalSession(this.#files, this.#tail, gate, await this.#findStart());
      } catch (error) {
        // A writer with a deleted lock file has begun it. The next try takes it over like that of a
        // dead writer.
        if (!(error instanceof SegmentTaken)) throw error;
        if (tries === takeoversMax) throw holdfastError("CORRUPT", error.message, { path: error.path });
      }
  }

  /** Where the next line goes. */
  async #findStart(): Promise<Tip> {
    const tip = await this.#files.continuity.following(() => this.#recovery.findEnd());
    if (tip.segment !== 0 && (await this.#recovery.isInDoubt(tip))) return await this.#recovery.rescue(tip);
    const needsSegment = tip.segment === 0 || this.#files.isFull(tip) || !this.#tail.isAlone;
    return needsSegment ? await this.#tail.startSegment(tip, []) : tip;
  }

  rewriting(): Rewriting {
    let number = 0;
    return {
      next: async (least) => (number = Math.max(number + 1, least)),
      publish: (tip) => this.#tail.rewrite(tip),
    };
  }

  async close(): Promise<void> {
    await this.#tail.segment.close();
    await this.#headFile.close();
  }
}
