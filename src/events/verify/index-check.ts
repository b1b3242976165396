// Checking the index files: one that is wrong never changes an answer, but whoever meets it pays for making it anew.
import { isHoldfastError } from "../../errors.ts";
import { findSlotNumber } from "../../format/name.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { openIndexFile } from "../index/file/index-file.ts";
import type { Coverage } from "../index/file/index-layout.ts";
import type { SealedSegment } from "../index/keys/indexed-line.ts";
import type { LogFiles } from "../log/log-files.ts";
import { hexOf } from "../log/format/tip.ts";
import { moveAside } from "./aside.ts";
import type { Findings } from "../../part/findings.ts";
import type { Stop } from "./segment-order.ts";

const namePattern = /^(\d{10})-(\d{10})\.idx$/;

export interface IndexChecking {
  readonly logId: string;
  readonly way: readonly Stop[];
  readonly repair: boolean;
  readonly signal: AbortSignal | undefined;
}

export async function checkIndexes(
  place: LogFiles,
  { logId, way, repair, signal }: IndexChecking,
  findings: Findings,
): Promise<void> {
  const sealed = sealedOf(way);
  const newest = way.at(-1)?.number ?? 0;
  for (const file of await indexFiles(place)) {
    signal?.throwIfAborted();
    const [, from, to] = namePattern.exec(file) ?? [];
    const last = findSlotNumber(to ?? "");
    // Foreign, or of segments that were sealed since we looked.
    if (from === undefined || last === undefined || last >= newest) continue;
    const begin = sealed.findIndex(({ number }) => number === findSlotNumber(from));
    const end = sealed.findIndex(({ number }) => number === last);
    const segments = begin < 0 || end < begin ? [] : sealed.slice(begin, end + 1);
    const path = `${place.directory}/index/${file}`;
    const why =
      segments.length === 0
        ? "it is of segments that this log does not have"
        : await faultOf(place, path, { logId, segments });
    if (why === undefined) continue;
    const repaired = repair && (await moveAside(place, path));
    const what = `This index is of no use: ${why}. It changes no answer.`;
    const remedy = repaired
      ? "It is in aside/; whoever needs it makes it anew."
      : "Nothing: whoever needs it makes it anew; `--repair` moves it aside.";
    findings.leftover({ path }, what, remedy, { repaired });
  }
}

async function indexFiles({ disk, directory }: LogFiles): Promise<string[]> {
  try {
    return (await disk.list(`${directory}/index`)).sort();
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

/** As an index knows them. The last one is still written to and has none. */
function sealedOf(way: readonly Stop[]): SealedSegment[] {
  return way.slice(0, -1).flatMap(({ number, header, end }) => {
    if (header === undefined || end === undefined) return [];
    const { length, position: last, crc } = end;
    return [{ number, first: header.after.position + 1, last, length, checksum: hexOf(crc) }];
  });
}

/** Reads every block of it. */
async function faultOf({ disk }: LogFiles, path: string, coverage: Coverage): Promise<string | undefined> {
  const name = path.slice(path.lastIndexOf("/") + 1, -".idx".length);
  try {
    const index = await openIndexFile(disk, path, name, coverage);
    try {
      await index.load();
      for await (const _lines of index.lines());
      for await (const keys of index.keys())
        for (let key = 0; key < keys.length; key++) {
          const list = keys.listOf(key);
          for (let piece = 0; piece < list.pieceCount; piece++) await list.piece(piece);
        }
    } finally {
      await index.close();
    }
    return undefined;
  } catch (error) {
    // Another process merges and removes them at any time.
    if (!(await disk.canOpen(path))) return undefined;
    if (isHoldfastError(error) || !(error instanceof Error)) throw error;
    return error.message.replace(/^The index \S+ cannot be used: /, "").replace(/\.$/, "");
  }
}
