// Exporting a log: its lines as they are, with their times, ids and conditions, chained anew so that the export is one whole, however many segments there were.
import type { Cancel } from "../../common.ts";
import { encodeLine } from "../log/format/line.ts";
import { hexOf } from "../log/format/tip.ts";
import type { OpenedLog } from "../open/opened-log.ts";
import { encodeEnd, encodeStart } from "./export-record.ts";
import { storedLines, type StoredLine } from "./stored-lines.ts";

export interface TransferOptions extends Cancel {
  /** In events. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface ExportOptions extends TransferOptions {
  /** Only appends that end there or before. Also of a log that is damaged behind it. Default: all. */
  upTo?: number | undefined;
}

/** Text in chunks of whole lines. Ends at the head it began with. */
export async function* exportLog(log: OpenedLog, options: TransferOptions): AsyncGenerator<string, void> {
  options.signal?.throwIfAborted();
  const tip = await log.advance();
  yield* exportLines(log.files.logId, tip.position, storedLines(log, tip), options);
}

/** Those lines, which end with `position`, as an export of the log `id`. */
export async function* exportLines(
  id: string,
  position: number,
  chunks: AsyncIterable<readonly StoredLine[]>,
  options: TransferOptions,
): AsyncGenerator<string, void> {
  const { text, crc: seed } = encodeStart({ log: id, position });
  yield text;
  let crc = seed;
  let count = 0;
  for await (const lines of chunks) {
    options.signal?.throwIfAborted();
    let chunk = "";
    for (const { content, first, time } of lines) {
      const line = encodeLine(content, first, time, crc);
      chunk += line.text;
      ({ crc } = line);
    }
    count += lines.length;
    const last = lines.at(-1);
    if (chunk !== "") yield chunk;
    if (last !== undefined) options.onProgress?.(last.first + last.events - 1, position);
  }
  yield encodeEnd({ lines: count, position, last: hexOf(crc) });
}
