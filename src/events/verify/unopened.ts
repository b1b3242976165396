// A log as its files tell of it, for those who must not open it: it may be too damaged for that.
import { Ground } from "../../durable/liveness/ground.ts";
import type { Ports } from "../../ports/ports.ts";
import type { LogMode } from "../model/event-store.ts";
import { joinOrLook } from "../open/opened-log.ts";
import { findLog, type LogRecord } from "../log/format/log-record.ts";
import { LogFiles } from "../log/log-files.ts";
import { readHeader } from "../log/format/segment.ts";
import { Findings } from "../../part/findings.ts";
import { segmentsThere } from "./published.ts";

export interface UnopenedLog {
  /** Without an id where nothing tells it. */
  readonly place: LogFiles;
  readonly mode: LogMode;
  close(): Promise<void>;
}

export async function findUnopened(ports: Ports, directory: string): Promise<UnopenedLog> {
  const path = `${directory}/.holdfast`;
  const join = (): Promise<Ground> => Ground.open(ports, path);
  const ground = await joinOrLook(directory, join, () => Ground.look(ports, path));
  try {
    // That it cannot be read is told by those who verify.
    const record = await unlessDamaged(() => findLog(ports.disk, directory));
    const placed = (id: string): LogFiles => new LogFiles(ground, directory, id, { isSynced: true });
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

/** Of the first segment that tells it: then it is at least one log. */
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
