// What crashes leave behind: segments that never came to count, and bytes that nobody reads.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { LogPlace } from "../log/place.ts";
import { isRoomFrom } from "../log/room.ts";
import { segmentPath } from "../log/segment.ts";
import { moveAside } from "./aside.ts";
import type { Findings } from "./findings.ts";
import { segmentsThere } from "./published.ts";
import type { Stop } from "./way.ts";

export interface Leftovers {
  readonly way: readonly Stop[];
  /** Where the last segment of the way ends, as far as it was followed; undefined when it is not known. */
  readonly length: number | undefined;
  /** The segment in which the log ended when we began, and the one in which it ends by now. */
  readonly published: number;
  readonly newest: number;
  /** Whether the way is known to be the way: else a segment beside it may yet be wanted. */
  readonly isSure: boolean;
  readonly repair: boolean;
}

export async function reportLeftovers(place: LogPlace, leftovers: Leftovers, findings: Findings): Promise<void> {
  const { way, length, published, newest, isSure, repair } = leftovers;
  const onWay = new Set(way.map(({ number }) => number));
  for (const number of await segmentsThere(place)) {
    if (onWay.has(number)) continue;
    const path = segmentPath(place.directory, number);
    // The number of a writer who can still publish is never below one that is published.
    if (number < published && isSure) {
      const repaired = repair && (await moveAside(place, path));
      const what =
        "Nothing leads to this segment: its writer died, or another took over. Nothing in it was ever acknowledged.";
      const remedy = repaired ? "It is in aside/; delete it when you like." : "Nothing; `--repair` moves it aside.";
      findings.leftover({ path }, what, remedy, { repaired });
    } else if (number > newest)
      findings.note(
        { path },
        "This segment is not published yet.",
        "Nothing: the next append takes it up, or leaves it behind.",
      );
  }
  for (const [index, { path, end }] of way.entries())
    await reportBeyond(place, path, end?.length ?? (index === way.length - 1 ? length : undefined), findings);
}

async function reportBeyond(
  { disk }: LogPlace,
  path: string,
  length: number | undefined,
  findings: Findings,
): Promise<void> {
  if (length === undefined) return;
  try {
    const { size } = await disk.stat(path);
    if (size <= length || (await hasOnlyRoom(disk, path, length))) return;
    const what = `${size - length} bytes stand beyond what is published. Nobody reads them.`;
    const remedy =
      "Nothing: a writer is at it right now, or died, or its disk failed; the log goes on in another segment.";
    findings.note({ path, byte: length }, what, remedy);
  } catch (error) {
    // Said before.
    if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
  }
}

async function hasOnlyRoom(disk: Disk, path: string, from: number): Promise<boolean> {
  const file = await disk.open(path, "read");
  try {
    return await isRoomFrom(file, from);
  } finally {
    await file.close();
  }
}
