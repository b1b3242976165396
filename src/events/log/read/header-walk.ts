// Walks from a later tip back to a known one through the headers of the segments in between. Each header names the
// previous segment.
import { holdfastError } from "../../../errors.ts";
import { listSegments, readHeader, segmentPath, type OpenedHeader } from "../format/segment.ts";
import type { Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { damaged } from "./scan.ts";

/** Headers read concurrently when a log is opened. */
const headersAtOnce = 16;

/**
 * Returns the headers of the segments after that of `from`, in order. Throws CORRUPT; CLOSED if
 * `to` does not continue `from`.
 */
export async function headersBetween(files: LogFiles, from: Tip, to: Tip): Promise<OpenedHeader[]> {
  const { disk, directory, continuity } = files;
  const fetched =
    to.segment - from.segment > headersAtOnce ? await fetchHeaders(files, from) : new Map<number, OpenedHeader>();
  const headers: OpenedHeader[] = [];
  let end = to;
  while (end.segment > from.segment) {
    const header = fetched.get(end.segment) ?? (await readHeader(disk, directory, end.segment));
    mustReach(files, header, end);
    headers.push(header);
    end = header.after;
  }
  // A published line stays published. If this one is gone, the log is another one.
  if (end.segment !== from.segment) throw continuity.broken();
  continuity.mustFollow(from, end);
  return headers.reverse();
}

/** Throws CORRUPT for a segment of another log, and for one that is shorter than its published part. */
function mustReach({ directory, logId }: LogFiles, { log, segment, size }: OpenedHeader, end: Tip): void {
  const path = segmentPath(directory, segment);
  if (size < end.length) throw damaged(path, size);
  if (log === logId) return;
  const message = `${path} belongs to another log, ${log}. Restore the segment of this log from a backup.`;
  throw holdfastError("CORRUPT", message, { path });
}

async function fetchHeaders({ disk, directory }: LogFiles, from: Tip): Promise<Map<number, OpenedHeader>> {
  const numbers = (await listSegments(disk, directory)).filter((number) => number > from.segment);
  const headers = new Map<number, OpenedHeader>();
  for (let start = 0; start < numbers.length; start += headersAtOnce)
    await Promise.all(
      numbers.slice(start, start + headersAtOnce).map(async (number) => {
        // An unreadable header matters only if the walk needs it. It is then read again, and throws.
        const header = await readHeader(disk, directory, number).catch(() => undefined);
        if (header !== undefined) headers.set(number, header);
      }),
    );
  return headers;
}
