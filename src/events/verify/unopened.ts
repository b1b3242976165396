// A log that is not opened, because it may be too damaged for that.
import type { Ports } from "../../ports/ports.ts";
import type { LogMode } from "../model/event-store.ts";
import { findLog, logPart, type LogRecord } from "../log/format/log-record.ts";
import { LogFiles } from "../log/log-files.ts";
import { readHeader } from "../log/format/segment.ts";
import { Findings } from "../../part/findings.ts";
import { joinGround } from "../../part/part.ts";
import { segmentsThere } from "./published.ts";

export interface UnopenedLog {
  /** With an empty id when no file tells it. */
  readonly place: LogFiles;
  readonly mode: LogMode;
  close(): Promise<void>;
}

export async function findUnopened(ports: Ports, directory: string): Promise<UnopenedLog> {
  // A record that cannot be read is reported by `verify`.
  const record = await unlessDamaged(() => findLog(ports.disk, directory));
  const { ground, ownsGround } = await joinGround(logPart, { ports, directory }, { known: record, isReadable: true });
  try {
    const placed = (id: string): LogFiles => new LogFiles(ground, directory, id, { isSynced: true, ownsGround });
    const place = placed(record?.id ?? (await findId(placed(""))) ?? "");
    return { place, mode: await modeOf(place, record), close: () => ground.close() };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

export async function modeOf({ disk, directory }: LogFiles, record: LogRecord | undefined): Promise<LogMode> {
  return record?.mode ?? ((await disk.canOpen(`${directory}/tenures`)) ? "share" : "local");
}

/** From the first segment whose header can be read. */
async function findId(place: LogFiles): Promise<string | undefined> {
  for (const number of await segmentsThere(place)) {
    const header = await unlessDamaged(() => readHeader(place.disk, place.directory, number));
    if (header !== undefined) return header.log;
  }
  return undefined;
}

async function unlessDamaged<T>(read: () => Promise<T>): Promise<T | undefined> {
  return await new Findings().attempt({ path: "" }, "", read);
}
