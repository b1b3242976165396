// The record of a holder, and the names of all its files.
import type { HolderInfo } from "../../common.ts";
import { countOf, flagOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";

/** The record of a process that has joined a ground. */
export interface HolderRecord {
  /** Unique; never reused. */
  readonly id: string;
  /** A name for people; empty if none was given. */
  readonly name: string;
  /** Host name of its machine. */
  readonly host: string;
  /** Process id on that machine; 0 if it is unknown. */
  readonly pid: number;
  /** When its process started, by its own clock, in milliseconds since 1970. */
  readonly startedAtMs: number;
  /** Version of Holdfast that it runs. */
  readonly version: string;
  /** The holder is dead once it has been silent for this long. */
  readonly leaseMs: number;
  /** The boot id of its kernel. */
  readonly bootId: string;
  /** The process table that knows it by `pid` and `startMark`. Empty in records of earlier builds. */
  readonly processSpace: string;
  /**
   * Mark of the start of its process, which tells it from a later process with the same pid. Empty
   * in records of earlier builds.
   */
  readonly startMark: string;
  /** True if its disk was local to it: no other kernel had that disk. */
  readonly isLocal: boolean;
  /** Identity of its heartbeat file, as its own kernel sees it; empty if it could not lock the file. */
  readonly beatIdentity: string;
}

export const holderKind: RecordKind<HolderRecord> = {
  kind: "holder",
  decode: (value) => {
    const fields = objectOf(value);
    return {
      id: textOf(fields.id),
      name: textOf(fields.name),
      host: textOf(fields.host),
      pid: countOf(fields.pid),
      startedAtMs: countOf(fields.startedAtMs),
      version: textOf(fields.version),
      leaseMs: countOf(fields.leaseMs),
      bootId: textOf(fields.bootId),
      processSpace: textOf(fields.processSpace ?? ""),
      startMark: textOf(fields.startMark ?? ""),
      isLocal: flagOf(fields.isLocal),
      beatIdentity: textOf(fields.beatIdentity),
    };
  },
};

/** The file names of a ground. */
export class GroundLayout {
  readonly directory: string;
  readonly holders: string;
  readonly temps: string;
  readonly groundRecord: string;

  constructor(directory: string) {
    this.directory = directory;
    this.holders = `${directory}/holders`;
    this.temps = `${directory}/temp`;
    this.groundRecord = `${directory}/ground.json`;
  }

  /** Written last when a session begins: from then on the holder counts. */
  record(id: string): string {
    return `${this.holders}/${id}.json`;
  }
  /** The name that `record` gets when the holder is judged dead. A rename makes the death final for all processes. */
  deathRecord(id: string): string {
    return `${this.holders}/${id}.dead`;
  }
  beat(id: string): string {
    return `${this.holders}/${id}.beat`;
  }
  /** A copy of the heartbeat of a holder that looked dead, made by the process that suspects it. */
  suspicion(id: string): string {
    return `${this.holders}/${id}.suspect`;
  }
  temp(id: string): string {
    return `${this.temps}/${id}`;
  }
}

/** A holder of which only some facts are known. An unknown text is empty; an unknown time is `since`. */
export function holderInfo(since: Date, known: Partial<HolderInfo>): HolderInfo {
  return { id: "", host: "", pid: 0, startedAt: since, lastSeenAt: since, version: "", state: "alive", ...known };
}
