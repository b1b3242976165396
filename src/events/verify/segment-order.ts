// The way through the log: from the segment in which it ends back to the first one, as the headers lead.
import type { LogFiles } from "../log/log-files.ts";
import { readHeader, segmentPath, type OpenedHeader } from "../log/format/segment.ts";
import type { Tip } from "../log/format/tip.ts";
import type { Findings } from "../../part/findings.ts";
import { segmentsThere, type Published } from "./published.ts";

export interface Stop {
  readonly number: number;
  readonly path: string;
  /** Undefined when it cannot be read: reported already. */
  readonly header: OpenedHeader | undefined;
  /** Where the one after it, or the log, says that this one ends. Undefined: nobody says so. */
  readonly end: Tip | undefined;
  /** Where that is not said: before this byte a line that does not fit is damage, behind it the end. */
  readonly floorBytes: number;
}

/** In the order of the log. */
export async function findWay(
  place: LogFiles,
  { segment, tip, floor, isUnsaid = false }: Published,
  findings: Findings,
): Promise<Stop[]> {
  const there = await segmentsThere(place);
  const way: Stop[] = [];
  let number = segment;
  let end = tip;
  while (number > 0) {
    const header = await findHeader(place, number, findings);
    const isFloor = floor?.segment === number;
    const floorBytes = isUnsaid ? Infinity : isFloor ? floor.length : 0;
    way.push({ number, path: segmentPath(place.directory, number), header, end, floorBytes });
    end = header?.after;
    // Without a header nobody says which one is before it. Most likely it is the next lower one that is there.
    number = header?.after.segment ?? there.findLast((each) => each < number) ?? 0;
  }
  return way.reverse();
}

async function findHeader(place: LogFiles, number: number, findings: Findings): Promise<OpenedHeader | undefined> {
  const path = segmentPath(place.directory, number);
  const spot = { path, line: 1, byte: 0 };
  const header = await findings.attempt(spot, "The header of this segment", () =>
    readHeader(place.disk, place.directory, number),
  );
  if (header === undefined || header.after.segment < number) return header;
  findings.damage(spot, `The header says that this segment goes on after segment ${header.after.segment}.`);
  return undefined;
}
