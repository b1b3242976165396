// A box that is open: its ground, its directories, and the clock of its server.
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { withServerClock } from "../../durable/liveness/server-age.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { SharedSync } from "../../durable/publish/shared-sync.ts";
import { makeId } from "../../format/id.ts";
import type { Disk } from "../../ports/disk.ts";
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { isHoldfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { BoxLayout } from "./layout.ts";

/** How long the offset between the server's clock and the monotonic one is believed. */
const offsetMs = 30_000;

export interface BoxOptions {
  /** Default true. */
  readonly isSynced?: boolean | undefined;
}

export class Box {
  readonly ground: Ground;
  readonly layout: BoxLayout;
  readonly isSynced: boolean;
  readonly #sync: SharedSync;
  /** Directories that are never removed, and that this process has made sure of. */
  readonly #permanent = new Map<string, Promise<void>>();
  /** Directories of this process: made once in a session, and never again in it. */
  readonly #own = new Map<string, Promise<void>>();
  /** Tickets that this process has in hand, or is about to claim: their paths. */
  readonly inHand: Set<string> = new Set();
  readonly #lanes = new Map<number, Promise<RollingChain<LaneOrder>>>();
  #offset: { readonly ms: number; readonly foundAtMs: number } | undefined;

  constructor(ground: Ground, directory: string, { isSynced = true }: BoxOptions = {}) {
    this.ground = ground;
    this.layout = new BoxLayout(directory);
    this.isSynced = isSynced;
    this.#sync = new SharedSync(ground.ports.disk);
  }

  get disk(): Disk {
    return this.ground.ports.disk;
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
  async ensure(directory: string): Promise<string> {
    let made = this.#permanent.get(directory);
    if (made === undefined) {
      made = ensureDirectory(this.disk, directory);
      this.#permanent.set(directory, made);
      made.catch(() => this.#permanent.delete(directory));
    }
    await made;
    return directory;
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
   * of directories go by it; no promise does.
   */
  async nowMs(): Promise<number> {
    const { clock } = this.ground.ports;
    const monotonicMs = clock.monotonicMs();
    if (this.disk.volume.kind === "local") return clock.wallMs();
    if (this.#offset === undefined || monotonicMs - this.#offset.foundAtMs > offsetMs) {
      const stampMs = await withServerClock(this.ground.staging, (server) => server.findNowMs());
      const foundAtMs = clock.monotonicMs();
      this.#offset = { ms: (stampMs ?? clock.wallMs()) - foundAtMs, foundAtMs };
    }
    return Math.floor(this.#offset.ms + clock.monotonicMs());
  }

  /**
   * The next place in the order of a lane: higher than that of every ticket that was published before. A
   * place that is won and not used does no harm.
   */
  async nextInLane(lane: number): Promise<number> {
    const order = await this.#openLane(lane);
    for (;;) {
      const last = randomName(this.ground.ports.random.bytes(16));
      try {
        const entry = await order.append(last, () => ({ last }));
        if (entry !== undefined) return entry.number;
      } catch (error) {
        if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
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
    let made = this.#own.get(directory);
    if (made === undefined) {
      made = this.ensure(parentOf(directory)).then(() => makeUniqueDirectory(this.disk, directory));
      this.#own.set(directory, made);
      made.catch(() => this.#own.delete(directory));
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
