// Publishing on one machine. A living process cannot lose an OS lock, and a dead process writes
// nothing, so the holder of the gate may write in place. The path of a batch:
//
//   1. The writer holds the gate and finds the end: from the head, or after a
//      restart from the segments                                             recovery.ts
//   2. Bytes after that end are in doubt: whole lines are saved, and the log
//      continues in a new segment                                            recovery.ts
//   3. A segment that is full, or in which another writer may be active, is
//      followed by a new one                                                 log-tail.ts
//   4. Lines are written at the end and synced; a failure ends the segment   log-tail.ts
//   5. The head is written in place: now the lines count                     log-tail.ts
//
// A lock file that is deleted under its holder admits a second writer. The second one begins a new
// segment, because its lock file is not the one that the head names, so the two never write to the
// same segment. The first one checks its lock file after it has written the head, and acknowledges
// nothing if the file is gone. It also checks before it begins a segment: then both know the same
// end, and only one of them can create that segment.
import type { Hold } from "../../../common.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { isUnwritable } from "../../../ports/disk-error.ts";
import { emptyTip, type Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { HeadFile } from "./head-file.ts";
import { LogTail, SegmentTaken } from "./log-tail.ts";
import { PublishedEnd } from "./published-end.ts";
import type { Publisher, LogRewrite, WriterGate, WriteSession } from "./publisher.ts";
import { Recovery } from "./recovery.ts";

type TryGate = () => Promise<(WriterGate & Hold) | undefined>;

/** How often in a row another writer may begin the segment that this process was about to begin. */
const takeoversMax = 3;

/** The real classes, or faulty variants for tests. */
export interface LocalPublisherClasses {
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
  /** Set if the head may be from before a restart and another writer held the gate so far. */
  #tryGate: TryGate | undefined;

  constructor(
    files: LogFiles,
    { EndClass = PublishedEnd, TailClass = LogTail, RecoveryClass = Recovery }: LocalPublisherClasses = {},
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
   * Called before the first `tip`: replaces a head that may be older than a restart, and takes over
   * lines that a dead writer left after the head, or that a restored head does not cover.
   *
   * Only under the gate: different boot ids do not prove a restart (a container may have its own),
   * and the lines after the head may be those of a living writer. While another writer holds the
   * gate, only the head counts: that writer has published it, or is about to publish another.
   */
  async settle(tryGate: TryGate): Promise<void> {
    this.#tryGate = undefined;
    const head = await this.#end.findHead();
    const isBelieved = head !== undefined && this.#end.isBelieved(head);
    const isSettled = isBelieved
      ? !(await this.#recovery.hasMore(head.tip))
      : head === undefined && !(await this.#recovery.hasMore(emptyTip));
    if (isSettled) return;
    // These lines can be shown while another writer holds the gate.
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
      // The lock file was deleted, and another writer has entered: it recovers the log.
      if (error instanceof SegmentTaken || (isHoldfastError(error, "LOCK_LOST") && isShowable)) this.#tryGate = again;
      // A process that cannot write can still read all lines that parse, as after a restart.
      else if (!isUnwritable(error)) throw error;
    } finally {
      await gate?.release();
    }
  }

  async begin(gate: WriterGate): Promise<WriteSession> {
    this.#tail.enter(gate);
    for (let tries = 1; ; tries++)
      try {
        return this.#tail.session(gate, await this.#findStart());
      } catch (error) {
        // A writer whose lock file was deleted began it. The next try takes it over like a segment of a dead writer.
        if (!(error instanceof SegmentTaken)) throw error;
        if (tries === takeoversMax) throw holdfastError("CORRUPT", error.message, { path: error.path });
      }
  }

  /** Returns the point at which the next line is written. */
  async #findStart(): Promise<Tip> {
    const tip = await this.#files.continuity.following(() => this.#recovery.findEnd());
    if (tip.segment !== 0 && (await this.#tail.isInDoubt(tip))) return await this.#recovery.rescue(tip);
    const needsSegment = tip.segment === 0 || this.#files.isFull(tip) || !this.#tail.isAlone;
    return needsSegment ? await this.#tail.startSegment(tip, []) : tip;
  }

  rewriting(): LogRewrite {
    let number = 0;
    return {
      next: async (least) => (number = Math.max(number + 1, least)),
      publish: (tip) => this.#tail.rewrite(tip),
    };
  }

  async close(): Promise<void> {
    await this.#tail.close();
    await this.#headFile.close();
  }
}
