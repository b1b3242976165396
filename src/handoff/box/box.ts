// A box that is open: its ground, its directories, and the clock of its server.
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { ServerTime } from "../../durable/liveness/server-time.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { SharedSync } from "../../durable/publish/shared-sync.ts";
import { makeId } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { BoxLayout } from "./layout.ts";

/** For so long a directory that was made, or found, is taken to be there. */
const believedMs = 1_000;
/** Each time that it cannot be told whether a place in a lane was won, another one is asked for. */
const laneTriesMax = 5;

export interface BoxOptions {
  /** Of its record. */
  readonly id?: string | undefined;
  /** Default true. */
  readonly isSynced?: boolean | undefined;
}

/**
 * What all boxes of one session share that are open in the same directory: a store may have opened it twice, with
 * different options.
 */
interface Hands {
  /** Directories of this process: made once in a session, and never again in it. */
  readonly own: Map<string, Promise<void>>;
  /** Tickets that this process has in hand, or is about to claim: their paths. */
  readonly inHand: Set<string>;
  openCount: number;
  /** The last one was closed, and what it had in hand is being given back. */
  leaving?: Promise<void>;
}

const handsOf = new WeakMap<Ground, Map<string, Hands>>();

function shareHands(ground: Ground, directory: string): Hands {
  const ofGround = handsOf.get(ground) ?? new Map<string, Hands>();
  handsOf.set(ground, ofGround);
  const hands = ofGround.get(directory) ?? { own: new Map(), inHand: new Set(), openCount: 0 };
  ofGround.set(directory, hands);
  return hands;
}

export class Box {
  readonly ground: Ground;
  readonly layout: BoxLayout;
  readonly id: string;
  readonly isSynced: boolean;
  readonly #sync: SharedSync;
  /** Directories that are never removed, and that this process has made sure of. */
  readonly #permanent = new Map<string, { readonly made: Promise<void>; readonly atMs: number }>();
  readonly #hands: Hands;
  readonly #lanes = new Map<number, Promise<RollingChain<LaneOrder>>>();
  readonly #time: ServerTime;

  constructor(ground: Ground, directory: string, { id = "", isSynced = true }: BoxOptions = {}) {
    this.id = id;
    this.ground = ground;
    this.layout = new BoxLayout(directory);
    this.isSynced = isSynced;
    this.#hands = shareHands(ground, directory);
    this.#hands.openCount++;
    this.#sync = new SharedSync(ground.ports.disk);
    this.#time = new ServerTime(ground.ports, ground.staging);
  }

  get disk(): Disk {
    return this.ground.ports.disk;
  }

  /** Tickets that this process has in hand, or is about to claim: their paths. */
  get inHand(): Set<string> {
    return this.#hands.inHand;
  }

  /**
   * To be called once. Runs `giveBack` if no other box of this session is open here: what is in hand goes back, and
   * the directories of this process with it. A box that is opened here meanwhile waits for that.
   */
  async leave(giveBack: () => Promise<void>): Promise<void> {
    const hands = this.#hands;
    if (--hands.openCount > 0) return;
    hands.leaving = giveBack().finally(() => {
      hands.own.clear();
      delete hands.leaving;
    });
    await hands.leaving;
  }

  newId(): string {
    const { clock, random } = this.ground.ports;
    return makeId(clock.wallMs(), random.bytes(16));
  }

  /** Makes the names in a directory durable, together with all other callers that wait for the same. */
  async sync(...directories: readonly string[]): Promise<void> {
    if (this.isSynced) await Promise.all(directories.map((directory) => this.#sync.sync(directory)));
  }

  /** A directory that stays, durable. */
  async ensure(directory: string, believedForMs: number = believedMs): Promise<string> {
    const nowMs = this.ground.ports.clock.monotonicMs();
    let known = this.#permanent.get(directory);
    // Not believed for ever: another program may remove it while this one runs.
    if (known === undefined || nowMs - known.atMs > believedForMs) {
      known = { made: this.#make(directory), atMs: nowMs };
      this.#permanent.set(directory, known);
      known.made.catch(() => this.#permanent.delete(directory));
    }
    await known.made;
    return directory;
  }

  /** Below a box that is there: under a share that was unmounted, no process would look for what is made. NOT_A_STORE. */
  async #make(directory: string): Promise<void> {
    const { directory: path, record } = this.layout;
    if (this.id !== "" && !(await this.disk.canOpen(record))) {
      const message = `The box in ${path} is gone: ${record} is not there. Is the share mounted? Nothing was made in its place.`;
      throw holdfastError("NOT_A_STORE", message, { path });
    }
    // Shared: many new keys at once make many directories in one.
    await ensureDirectory(this.disk, directory, (parent) => this.sync(parent));
  }

  /** What a directory has, or at most `countMax` of it; empty for one that is gone, and for what is none. */
  async names(directory: string, countMax?: number): Promise<string[]> {
    try {
      return countMax === undefined ? await this.disk.list(directory) : await this.disk.listSome(directory, countMax);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return [];
      throw error;
    }
  }

  /**
   * Does something in a directory that stays. If another program has removed it meanwhile, it is made again. With
   * `isKept`, no process of Holdfast removes it: once made durable it is taken to be there until `work` fails.
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

  /** Where this session keeps tickets that are not published, and results that are not committed. */
  async staging(session: HolderSession): Promise<string> {
    return await this.#makeOwn(this.layout.staging(session.holder.id));
  }

  /** Where this session keeps what it has claimed. */
  async processing(session: HolderSession): Promise<string> {
    return await this.#makeOwn(this.layout.processing(session.holder.id));
  }

  /**
   * The time by the clock of the file server, which is the same for all machines. Delays and the names
   * of directories go by it; no promise does. Where nothing can be written, by the clock of this machine.
   */
  async nowMs(): Promise<number> {
    return await this.#time.nowMs();
  }

  /**
   * The next place in the order of a lane: higher than that of every ticket that was published before. A
   * place that is won and not used does no harm.
   */
  async nextInLane(lane: number): Promise<number> {
    const order = await this.#openLane(lane);
    for (let tries = 1; ; tries++) {
      const last = randomName(this.ground.ports.random.bytes(16));
      try {
        const entry = await order.append(last, () => ({ last }));
        if (entry !== undefined) return entry.number;
      } catch (error) {
        // A place that was won and not told is a gap, which does no harm.
        if (isHoldfastError(error, "OUTCOME_UNKNOWN") && tries < laneTriesMax) continue;
        // A chain whose first epoch could not be named stays without one: the next caller opens it anew.
        this.#lanes.delete(lane);
        throw error;
      }
    }
  }

  async #openLane(lane: number): Promise<RollingChain<LaneOrder>> {
    let opened = this.#lanes.get(lane);
    if (opened === undefined) {
      const { bootId } = this.ground.ports.host;
      const options = {
        kind: laneOrderKind,
        initial: { last: "" },
        counts: async () => undefined,
        bootId,
      };
      opened = RollingChain.open<LaneOrder>(this.ground.staging, `${this.layout.lane(lane)}/order`, options);
      this.#lanes.set(lane, opened);
      opened.catch(() => this.#lanes.delete(lane));
    }
    return await opened;
  }

  /**
   * A session that finds its directory gone was taken for dead. The directory is not made again: what
   * other processes have given back must not be confused with what this one still does.
   */
  async #makeOwn(directory: string): Promise<string> {
    await this.#hands.leaving?.catch(() => undefined);
    let made = this.#hands.own.get(directory);
    if (made === undefined) {
      made = this.within(parentOf(directory), () => makeUniqueDirectory(this.disk, directory));
      this.#hands.own.set(directory, made);
      made.catch(() => this.#hands.own.delete(directory));
    }
    await made;
    return directory;
  }
}

/** Only the numbers count; a state tells its append from another's. */
interface LaneOrder {
  readonly last: string;
}

const laneOrderKind: RecordKind<LaneOrder> = {
  kind: "lane-order",
  decode: (value) => ({ last: textOf(objectOf(value).last) }),
};
