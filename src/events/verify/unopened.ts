// A log that is examined without opening it, because it may be too damaged for that.
import type { Ports } from "../../ports/ports.ts";
import type { LogMode } from "../model/event-store.ts";
import { findLog, logPart, type LogRecord } from "../log/format/log-record.ts";
import { LogFiles } from "../log/log-files.ts";
import { readHeader } from "../log/format/segment.ts";
import { Findings } from "../../part/findings.ts";
import { joinGround } from "../../part/part.ts";
import { existingSegments } from "./published.ts";

export interface UnopenedLog {
  /** Its id is empty if no file states it. */
  readonly files: LogFiles;
  readonly mode: LogMode;
  close(): Promise<void>;
}

export async function findUnopenedLog(ports: Ports, directory: string): Promise<UnopenedLog> {
  // `verify` reports a record that cannot be read.
  const record = await unlessDamaged(() => findLog(ports.disk, directory));
  const { ground, ownsGround } = await joinGround(logPart, { ports, directory }, { known: record, isReadable: true });
  try {
    const placed = (id: string): LogFiles => new LogFiles(ground, directory, id, { isSynced: true, ownsGround });
    const files = placed(record?.id ?? (await findId(placed(""))) ?? "");
    return { files, mode: await modeOf(files, record), close: () => ground.close() };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

export async function modeOf({ disk, directory }: LogFiles, record: LogRecord | undefined): Promise<LogMode> {
  return record?.mode ?? ((await disk.canOpen(`${directory}/tenures`)) ? "share" : "local");
}

/** Reads the log's id from the first segment with a readable header. */
async function findId(files: LogFiles): Promise<string | undefined> {
  for (const number of await existingSegments(files)) {
    const header = await unlessDamaged(() => readHeader(files.disk, files.directory, number));
    if (header !== undefined) return header.log;
  }
  return undefined;
}

async function unlessDamaged<T>(read: () => Promise<T>): Promise<T | undefined> {
  return await new Findings().attempt({ path: "" }, "", read);
}
