// All lines of a log in their order, whichever segments they are in.
import { contentOf, decodeHead } from "../log/format/line.ts";
import { scanPublished } from "../log/read/scan.ts";
import { readHeader } from "../log/format/segment.ts";
import type { Tip } from "../log/format/tip.ts";
import type { OpenedLog } from "../open/opened-log.ts";

export interface StoredLine {
  readonly first: number;
  readonly time: string;
  /** All of it that does not depend on its place. */
  readonly content: string;
  readonly events: number;
}

/** Up to `tip`, which the view of the log has reached. In chunks: a promise for each line would cost more than the line. */
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
