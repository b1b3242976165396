// The record of a box, box.json: its id and its ground. Decided once; it binds every process on every machine.
import { decideRecord, findDecision } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { PartKind } from "../../part/location.ts";
import { decodeGround, type PartRecord } from "../../part/part.ts";
import type { Disk } from "../../ports/disk.ts";
import { laneCount } from "./layout.ts";

export interface BoxRecord extends PartRecord {
  /** How many lanes groups are divided into: all processes must agree. */
  readonly lanes: number;
}

const boxKind: RecordKind<BoxRecord> = {
  kind: "box",
  decode: (value) => {
    const { id, lanes, ground } = objectOf(value);
    if (countOf(lanes) !== laneCount) throw new TypeError(`not ${laneCount} lanes`);
    return { id: textOf(id), lanes: laneCount, ...decodeGround(ground) };
  },
};

export const boxPart: PartKind = { what: "hand-off box", room: "handoff", traces: ["box.json"] };

/** NEWER_FORMAT before anything is written. */
export async function findBox(disk: Disk, directory: string): Promise<BoxRecord | undefined> {
  return await findDecision(disk, boxKind, `${directory}/box.json`);
}

export async function decideBox(staging: Staging, directory: string, proposal: PartRecord): Promise<BoxRecord> {
  return await decideRecord(staging, boxKind, `${directory}/box.json`, { ...proposal, lanes: laneCount });
}
