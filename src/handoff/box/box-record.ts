// The record of a box, box.json: its id and its ground. The process that creates the box writes it
// once. All processes on all machines follow it.
import { replace } from "../../durable/publish/publish.ts";
import { decideRecord, findDecision, getRecord } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { formatVersion } from "../../format/version.ts";
import type { PartKind } from "../../part/location.ts";
import { decodeGround, type PartRecord } from "../../part/part.ts";
import type { Disk } from "../../ports/disk.ts";
import { laneCount } from "./layout.ts";

export interface BoxRecord extends PartRecord {
  /** Number of lanes for groups. All processes must agree on it. */
  readonly lanes: number;
  /** True if keys won at the same moment may share a file. Absent in boxes made by older builds. */
  readonly sharesKeys?: boolean;
}

/** Older builds cannot read shared keys, so this format keeps them from opening the box. */
export const sharedKeysFormat = 2;

const boxKind: RecordKind<BoxRecord> = {
  kind: "box",
  newestFormat: sharedKeysFormat,
  formatOf: ({ sharesKeys }) => (sharesKeys === true ? sharedKeysFormat : formatVersion),
  decode: (value) => {
    const { id, lanes, ground, sharesKeys } = objectOf(value);
    if (countOf(lanes) !== laneCount) throw new TypeError(`not ${laneCount} lanes`);
    return { id: textOf(id), lanes: laneCount, sharesKeys: sharesKeys === true, ...decodeGround(ground) };
  },
};

export const boxPart: PartKind = { what: "hand-off box", room: "handoff", traces: ["box.json"] };

/** Throws NEWER_FORMAT, before the caller writes anything. */
export async function findBox(disk: Disk, directory: string): Promise<BoxRecord | undefined> {
  return await findDecision(disk, boxKind, `${directory}/box.json`);
}

export async function decideBox(staging: Staging, directory: string, proposal: PartRecord): Promise<BoxRecord> {
  return await decideRecord(staging, boxKind, `${directory}/box.json`, {
    ...proposal,
    lanes: laneCount,
    sharesKeys: true,
  });
}

/** Lets keys share files from now on. Call it only while no other process uses the box. */
export async function shareKeys(staging: Staging, directory: string): Promise<void> {
  const path = `${directory}/box.json`;
  const record = await getRecord(staging.disk, boxKind, path);
  await replace(staging, path, encodeRecord(boxKind, { ...record, sharesKeys: true }));
}
