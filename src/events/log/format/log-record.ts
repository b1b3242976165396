// The record of a log, log.json: its id and its mode. They are decided once and bind every process on every machine.
import { decideRecord, findDecision } from "../../../durable/publish/record-file.ts";
import type { Staging } from "../../../durable/publish/staging.ts";
import { holdfastError } from "../../../errors.ts";
import { objectOf, textOf, wordOf } from "../../../format/decoding.ts";
import type { RecordKind } from "../../../format/record.ts";
import type { Disk } from "../../../ports/disk.ts";
import type { PartKind } from "../../../part/location.ts";
import { decodeGround, type PartRecord } from "../../../part/part.ts";
import type { LogMode } from "../../model/event-store.ts";

export interface LogRecord extends PartRecord {
  readonly mode: LogMode;
}

const logKind: RecordKind<LogRecord> = {
  kind: "log",
  decode: (value) => {
    const { id, mode, ground } = objectOf(value);
    return { id: textOf(id), mode: wordOf(mode, ["local", "share"]), ...decodeGround(ground) };
  },
};

/** If the record is lost, the segments still show that there is a log. */
export const logPart: PartKind = { what: "event log", room: "events", traces: ["log.json", "segments"] };

function recordPath(directory: string): string {
  return `${directory}/log.json`;
}

/** Throws NEWER_FORMAT before anything is written. */
export async function findLog(disk: Disk, directory: string): Promise<LogRecord | undefined> {
  return await findDecision(disk, logKind, recordPath(directory));
}

export async function decideLog(staging: Staging, directory: string, proposal: LogRecord): Promise<LogRecord> {
  return await decideRecord(staging, logKind, recordPath(directory), proposal);
}

/** Throws UNSUPPORTED_DISK for a log of mode "local" on a network mount: its lock does not exclude other machines. */
export function checkMode({ mode }: LogRecord, directory: string, { kind, type }: Disk["volume"]): void {
  if (mode === "share" || kind === "local") return;
  const message = `${directory} is a log for one machine (mode "local"), but ${type} is not known to be local: another machine could write beside it. Export it on its own machine (holdfast events export), and import it into a new directory on the share.`;
  throw holdfastError("UNSUPPORTED_DISK", message, { path: directory, missing: ["a local disk"] });
}
