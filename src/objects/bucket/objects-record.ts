// The record of an object store, objects.json: its id and its ground. Written once and never
// changed.
import { decideRecord, findDecision } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { PartKind } from "../../part/location.ts";
import { decodeGround, type PartRecord } from "../../part/part.ts";
import type { Disk } from "../../ports/disk.ts";
import { ObjectsLayout } from "./layout.ts";

const objectsKind: RecordKind<PartRecord> = {
  kind: "objects",
  decode: (value) => {
    const { id, ground } = objectOf(value);
    return { id: textOf(id), ...decodeGround(ground) };
  },
};

export const objectsPart: PartKind = {
  what: "object store",
  room: "objects",
  traces: ["objects.json"],
  isOnly: true,
};

/** Throws NEWER_FORMAT, before the caller writes anything. */
export async function findObjects(disk: Disk, directory: string): Promise<PartRecord | undefined> {
  return await findDecision(disk, objectsKind, new ObjectsLayout(directory).record);
}

export async function decideObjects(staging: Staging, directory: string, proposal: PartRecord): Promise<PartRecord> {
  return await decideRecord(staging, objectsKind, new ObjectsLayout(directory).record, proposal);
}
