// The record of a holder, and the names of all files that belong to it.
import type { HolderInfo } from "../../common.ts";
import { countOf, flagOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";

export interface HolderRecord {
  /** Never used again. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly startedAtMs: number;
  /** Of Holdfast. */
  readonly version: string;
  /** Silent for so long, it counts as dead. */
  readonly leaseMs: number;
  readonly bootId: string;
  /** Which process table knows it by `pid` and `startMark`; both empty in records of earlier builds. */
  readonly processSpace: string;
  readonly startMark: string;
  /** Whether its disk was local to it: then no other kernel had that disk. */
  readonly isLocal: boolean;
  /** Of its heartbeat file, as its own kernel sees it; empty when it could not lock the file. */
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

/** The names in a ground. */
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

  /** Made last when a session begins: from then on the holder counts. */
  record(id: string): string {
    return `${this.holders}/${id}.json`;
  }
  /**
   * What `record` becomes when the holder is judged dead: by a rename, so that it is final for all
   * processes.
   */
  deathRecord(id: string): string {
    return `${this.holders}/${id}.dead`;
  }
  beat(id: string): string {
    return `${this.holders}/${id}.beat`;
  }
  /** A copy of the beat of a holder that looked dead, made by the process to which it did. */
  suspicion(id: string): string {
    return `${this.holders}/${id}.suspect`;
  }
  temp(id: string): string {
    return `${this.temps}/${id}`;
  }
}

/** A holder of which only some facts are known. An unknown text is empty, and an unknown time is `since`. */
export function holderInfo(since: Date, known: Partial<HolderInfo>): HolderInfo {
  return { id: "", host: "", pid: 0, startedAt: since, lastSeenAt: since, version: "", state: "alive", ...known };
}
