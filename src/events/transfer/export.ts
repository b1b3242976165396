// Exports a log: its lines unchanged, with times, ids and conditions. Their checksums form a new chain, so that the
// export is one unit, however many segments the log has.
import type { Cancel } from "../../common.ts";
import { contentOf, decodeHead, encodeLine } from "../log/format/line.ts";
import { readHeader } from "../log/format/segment.ts";
import { hexOf, type Tip } from "../log/format/tip.ts";
import { scanPublished } from "../log/read/scan.ts";
import type { OpenedLog } from "../open/opened-log.ts";
import { encodeEnd, encodeStart } from "./export-record.ts";

/** Options of exports and imports. */
export interface TransferOptions extends Cancel {
  /** Called now and then with the number of events done and the total. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Options of `exportEvents`. */
export interface ExportOptions extends TransferOptions {
  /**
   * Exports only appends that end at this position or before. Damage after it does no harm.
   * Default: all.
   */
  upTo?: number | undefined;
}

/** Yields text in chunks of whole lines. Ends at the head at which it began. */
export async function* exportLog(log: OpenedLog, options: TransferOptions): AsyncGenerator<string, void> {
  options.signal?.throwIfAborted();
  const tip = await log.advance();
  yield* exportLines(log.files.logId, tip.position, storedLines(log, tip), options);
}

/** Exports these lines, the last of which ends at `position`, as an export of the log `id`. */
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

export interface StoredLine {
  readonly first: number;
  readonly time: string;
  /** The part of the line that does not depend on its position. */
  readonly content: string;
  readonly events: number;
}

/**
 * Yields all lines up to `tip`, which the view of the log must have reached. Several at a time: a promise per line
 * would cost more than the line.
 */
export async function* storedLines(log: OpenedLog, tip: Tip): AsyncGenerator<readonly StoredLine[], void> {
  const { disk, directory } = log.files;
  const sealed = log.view.segments.filter(({ number }) => number < tip.segment);
  const last = tip.segment === 0 ? [] : [{ number: tip.segment, length: tip.length }];
  for (const { number, length } of [...sealed, ...last]) {
    const { bytes: from, crc } = await readHeader(disk, directory, number);
    for await (const lines of scanPublished(disk, directory, { segment: number, from, to: length, crc }))
      yield lines.map(({ bytes }) => {
        const { first, events } = decodeHead(bytes);
        return { ...contentOf(bytes), first, events: events.length };
      });
  }
}
