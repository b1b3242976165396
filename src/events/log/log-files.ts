// The files of one log: its directory, and everything that its components need to write there.
import type { Staging } from "../../durable/publish/staging.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { makeId } from "../../format/id.ts";
import type { Disk } from "../../ports/disk.ts";
import { Continuity } from "./continuity.ts";
import { segmentBytesMax, type SegmentHeader } from "./format/segment.ts";
import type { Tip } from "./format/tip.ts";

export interface LogFilesOptions {
  /** False (durability "none"): appends are acknowledged before they are on disk. */
  readonly isSynced: boolean;
  readonly segmentBytesMax?: number | undefined;
  /** True if the ground is closed with the log. Default true; false in a store. */
  readonly ownsGround?: boolean | undefined;
}

export class LogFiles {
  readonly ground: Ground;
  readonly directory: string;
  readonly logId: string;
  readonly isSynced: boolean;
  readonly segmentBytesMax: number;
  readonly ownsGround: boolean;
  readonly continuity: Continuity;
  /** The number of the last segment that this process began. */
  #made = 0;

  constructor(ground: Ground, directory: string, logId: string, options: LogFilesOptions) {
    this.ground = ground;
    this.directory = directory;
    this.logId = logId;
    this.continuity = new Continuity(directory);
    this.ownsGround = options.ownsGround ?? true;
    this.isSynced = options.isSynced;
    this.segmentBytesMax = options.segmentBytesMax ?? segmentBytesMax;
  }

  get disk(): Disk {
    return this.ground.ports.disk;
  }

  get staging(): Staging {
    return this.ground.staging;
  }

  get bootId(): string {
    return this.ground.ports.host.bootId;
  }

  /** Returns the total size of all segments. */
  async bytes(): Promise<number> {
    const directory = `${this.directory}/segments`;
    let bytes = 0;
    for (const name of await this.disk.list(directory))
      bytes += (await this.disk.findStat(`${directory}/${name}`))?.size ?? 0;
    return bytes;
  }

  /** True if the next line must begin a new segment. */
  isFull({ length }: Pick<Tip, "length">): boolean {
    return length >= this.segmentBytesMax;
  }

  newId(): string {
    const { clock, random } = this.ground.ports;
    return makeId(clock.wallMs(), random.bytes(16));
  }

  /** Returns the header of a segment that continues the log after `after`. */
  newHeader(segment: number, after: Tip): SegmentHeader {
    this.#made = segment;
    return { log: this.logId, segment, id: this.newId(), after };
  }

  /** True if this process began the segment. */
  hasMade(segment: number): boolean {
    return this.#made === segment;
  }
}
