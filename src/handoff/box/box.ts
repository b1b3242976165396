// An open box: its ground, its directories, and its server's clock.
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { ServerTime } from "../../durable/liveness/server-time.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { SharedSync } from "../../durable/publish/shared-sync.ts";
import { makeId, randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import { BoxLayout } from "./layout.ts";
import { namesIn } from "./names.ts";
import { provenReads } from "./proven-reads.ts";

/** How long this process assumes that a directory still exists. */
const believedMs = 1_000;
/**
 * If the reply to an append to a lane's order was lost, the caller appends again, at most this
 * often.
 */
const laneTriesMax = 5;

export interface BoxOptions {
  /** The id in the box's record. */
  readonly id?: string | undefined;
  /** Default true. */
  readonly isSynced?: boolean | undefined;
  /** True if keys won at the same moment may share a file. Default true; false for a box made by an older build. */
  readonly sharesKeys?: boolean | undefined;
}

/**
 * State shared by all boxes that one session has open on the same directory: a store may open it
 * twice with different options.
 */
interface SharedBoxState {
  /** Directories of this session. Each is created once. */
  readonly own: Map<string, Promise<void>>;
  /** Paths of the tickets that this process has claimed or is about to claim. */
  readonly inProgress: Set<string>;
  openCount: number;
  /** Set while the last box to close returns its tickets. */
  leaving?: Promise<void>;
}

const statesOf = new WeakMap<Ground, Map<string, SharedBoxState>>();

function sharedState(ground: Ground, directory: string): SharedBoxState {
  const ofGround = statesOf.get(ground) ?? new Map<string, SharedBoxState>();
  statesOf.set(ground, ofGround);
  const shared = ofGround.get(directory) ?? { own: new Map(), inProgress: new Set(), openCount: 0 };
  ofGround.set(directory, shared);
  return shared;
}

export class Box {
  readonly ground: Ground;
  /** The disk of the ground. A bad file on a working disk fails with CORRUPT. */
  readonly disk: Disk;
  readonly layout: BoxLayout;
  readonly id: string;
  readonly isSynced: boolean;
  readonly sharesKeys: boolean;
  readonly #sync: SharedSync;
  /**
   * For each parent: the directory whose name in it this process last made durable, and the
   * identity of that directory.
   */
  readonly #named = new Map<string, { readonly directory: string; readonly identity: string }>();
  /** Permanent directories that this process created or found. */
  readonly #permanent = new Map<string, { readonly made: Promise<void>; readonly atMs: number }>();
  readonly #shared: SharedBoxState;
  readonly #lanes = new Map<number, Promise<RollingChain<LaneOrder>>>();
  readonly #time: ServerTime;

  constructor(ground: Ground, directory: string, { id = "", isSynced = true, sharesKeys = true }: BoxOptions = {}) {
    this.id = id;
    this.ground = ground;
    this.disk = provenReads(ground.ports.disk, ground.ports.clock, ground.staging);
    this.layout = new BoxLayout(directory);
    this.isSynced = isSynced;
    this.sharesKeys = sharesKeys;
    this.#shared = sharedState(ground, directory);
    this.#shared.openCount++;
    this.#sync = new SharedSync(ground.ports.disk);
    this.#time = new ServerTime(ground.ports, ground.staging);
  }

  /** Paths of the tickets that this process has claimed or is about to claim. */
  get inProgress(): Set<string> {
    return this.#shared.inProgress;
  }

  /**
   * Call it once. If this session has no other box open on this directory, runs `giveBack`, which
   * returns claimed tickets, and then removes this process's directories. A box that is opened
   * meanwhile waits for that.
   */
  async leave(giveBack: () => Promise<void>): Promise<void> {
    const shared = this.#shared;
    if (--shared.openCount > 0) return;
    shared.leaving = giveBack().finally(() => {
      shared.own.clear();
      delete shared.leaving;
    });
    await shared.leaving;
  }

  newId(): string {
    const { clock, random } = this.ground.ports;
    return makeId(clock.wallMs(), random.bytes(16));
  }

  /** Makes the names in the directories durable. Concurrent callers share the sync. */
  async sync(...directories: readonly string[]): Promise<void> {
    if (this.isSynced) await Promise.all(directories.map((directory) => this.#sync.sync(directory)));
  }

  /**
   * Makes the names in a directory durable, and the directory's own name: another process may have
   * removed the directory and recreated it without a sync. If its identity is that of the last
   * call, its own name is already durable.
   */
  async syncNamed(directory: string): Promise<void> {
    if (!this.isSynced) return;
    const parent = parentOf(directory);
    const known = this.#named.get(parent);
    const syncing = this.#sync.syncIdentified(directory).catch((error: unknown) => {
      // Another process removed the directory because it was empty. Syncing the parent makes the
      // removal durable.
      if (!hasErrno(error, "ENOENT")) throw error;
    });
    if (this.disk.volume.kind !== "local") {
      await Promise.all([syncing, this.#sync.sync(parent)]);
      return;
    }
    const identity = await syncing;
    if (known !== undefined && known.directory === directory && known.identity === identity) return;
    // The parent is synced only after the identity was read: an earlier sync might cover a previous
    // directory of this name.
    await this.#sync.sync(parent);
    if (typeof identity === "string") this.#named.set(parent, { directory, identity });
  }

  /** Creates a permanent directory durably, if it does not exist. */
  async ensure(directory: string, believedForMs: number = believedMs): Promise<string> {
    const nowMs = this.ground.ports.clock.monotonicMs();
    let known = this.#permanent.get(directory);
    // The assumption expires: another program may remove the directory while this one runs.
    if (known === undefined || nowMs - known.atMs > believedForMs) {
      known = { made: this.#make(directory), atMs: nowMs };
      this.#permanent.set(directory, known);
      known.made.catch(() => this.#permanent.delete(directory));
    }
    await known.made;
    return directory;
  }

  /**
   * Creates `directory` only if the box exists: nobody would find a directory created below an
   * unmounted share. Throws NOT_A_STORE.
   */
  async #make(directory: string): Promise<void> {
    const { directory: path, record } = this.layout;
    if (this.id !== "" && !(await this.disk.canOpen(record))) {
      const message = `The box in ${path} is gone: ${record} does not exist. Is the share mounted? Nothing was created.`;
      throw holdfastError("NOT_A_STORE", message, { path });
    }
    // `this.sync` shares one sync among callers: many new keys create many directories in one
    // parent at the same moment.
    await ensureDirectory(this.disk, directory, (parent) => this.sync(parent));
  }

  /**
   * Lists a directory, or at most `countMax` of its names. Returns an empty list if it does not
   * exist or is not a directory.
   */
  async names(directory: string, countMax?: number): Promise<string[]> {
    return await namesIn(this.disk, directory, countMax);
  }

  /**
   * Runs `work` in a permanent directory, and recreates the directory if another program removed
   * it. With `isKept`, no Holdfast process removes the directory: after its first sync, it is
   * assumed to exist until `work` fails.
   */
  async within<T>(
    directory: string,
    work: () => Promise<T>,
    { isKept = false }: { readonly isKept?: boolean } = {},
  ): Promise<T> {
    await this.ensure(directory, isKept ? Infinity : believedMs);
    try {
      return await work();
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
      this.#permanent.delete(directory);
      await this.ensure(directory);
      return await work();
    }
  }

  /** The directory for this session's unpublished tickets and uncommitted results. Its name is durable. */
  async staging(session: HolderSession): Promise<string> {
    return await this.#makeOwn(this.layout.staging(session.holder.id), (parent) => this.sync(parent));
  }

  /** The directory for this session's claimed tickets. */
  async processing(session: HolderSession): Promise<string> {
    return await this.#makeOwn(this.layout.processing(session.holder.id));
  }

  /**
   * Returns the time of the file server's clock, which is the same for all machines. Delays and
   * directory names use it; no guarantee depends on it. Where nothing can be written, it is this
   * machine's clock.
   */
  async nowMs(): Promise<number> {
    return await this.#time.nowMs();
  }

  /**
   * Returns the next position in a lane: higher than that of every ticket published before. A
   * position that is won and not used does no harm.
   */
  async nextInLane(lane: number): Promise<number> {
    const order = await this.#openLane(lane);
    for (let tries = 1; ; tries++) {
      const last = randomName(this.ground.ports.random.bytes(16));
      try {
        const entry = await order.append(last, () => ({ last }));
        if (entry !== undefined) return entry.number;
      } catch (error) {
        // If the lost append did win a position, that position stays a gap, which does no harm.
        if (isHoldfastError(error, "OUTCOME_UNKNOWN") && tries < laneTriesMax) continue;
        // This chain may have failed to create its first epoch, and would then never get one. The next
        // caller opens a new chain.
        this.#lanes.delete(lane);
        throw error;
      }
    }
  }

  /**
   * Reads the order of a lane, bypassing this process's cache. Rejects if the order exists and
   * cannot be read.
   */
  async readLane(lane: number): Promise<void> {
    await (await this.#newLane(lane)).read();
  }

  async #newLane(lane: number): Promise<RollingChain<LaneOrder>> {
    const { bootId } = this.ground.ports.host;
    return await RollingChain.open<LaneOrder>(this.ground.staging, `${this.layout.lane(lane)}/order`, {
      kind: laneOrderKind,
      initial: { last: "" },
      counts: async () => undefined,
      bootId,
    });
  }

  async #openLane(lane: number): Promise<RollingChain<LaneOrder>> {
    let opened = this.#lanes.get(lane);
    if (opened === undefined) {
      opened = this.#newLane(lane);
      this.#lanes.set(lane, opened);
      opened.catch(() => this.#lanes.delete(lane));
    }
    return await opened;
  }

  /**
   * If a session finds its directory gone, it was judged dead. The directory is not recreated:
   * tickets that other processes returned must not be confused with those that this session still
   * works on.
   */
  async #makeOwn(directory: string, sync?: (parent: string) => Promise<void>): Promise<string> {
    await this.#shared.leaving?.catch(() => undefined);
    let made = this.#shared.own.get(directory);
    if (made === undefined) {
      const parent = parentOf(directory);
      made = this.within(parent, () => makeUniqueDirectory(this.disk, directory)).then(() => sync?.(parent));
      this.#shared.own.set(directory, made);
      made.catch(() => this.#shared.own.delete(directory));
    }
    await made;
    return directory;
  }
}

/** Only the numbers of the chain matter. The state only distinguishes one append from another. */
interface LaneOrder {
  readonly last: string;
}

const laneOrderKind: RecordKind<LaneOrder> = {
  kind: "lane-order",
  decode: (value) => ({ last: textOf(objectOf(value).last) }),
};
