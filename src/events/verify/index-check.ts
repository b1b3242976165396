// Checks the index files. A wrong one never changes an answer, but a reader that meets it has to
// build a new one.
import { listIfThere } from "../../durable/publish/directory.ts";
import { isErrorLike, isHoldfastError } from "../../errors.ts";
import { findSlotNumber } from "../../format/name.ts";
import { openIndexFile } from "../index/file/index-file.ts";
import type { Coverage } from "../index/file/index-layout.ts";
import type { SealedSegment } from "../index/keys/indexed-line.ts";
import type { LogFiles } from "../log/log-files.ts";
import { hexOf } from "../log/format/tip.ts";
import { moveAside } from "../../part/aside.ts";
import type { Findings } from "../../part/findings.ts";
import type { ChainedSegment } from "./published.ts";

const namePattern = /^(\d{10})-(\d{10})\.idx$/;

export interface IndexCheckOptions {
  readonly logId: string;
  readonly segments: readonly ChainedSegment[];
  readonly repair: boolean;
  readonly signal: AbortSignal | undefined;
}

export async function checkIndexes(
  files: LogFiles,
  { logId, segments, repair, signal }: IndexCheckOptions,
  findings: Findings,
): Promise<void> {
  const sealed = sealedOf(segments);
  const newest = segments.at(-1)?.number ?? 0;
  for (const file of await indexFiles(files)) {
    signal?.throwIfAborted();
    const [, from, to] = namePattern.exec(file) ?? [];
    const last = findSlotNumber(to ?? "");
    // Foreign, or covers segments that were sealed since the check began.
    if (from === undefined || last === undefined || last >= newest) continue;
    const begin = sealed.findIndex(({ number }) => number === findSlotNumber(from));
    const end = sealed.findIndex(({ number }) => number === last);
    const segments = begin < 0 || end < begin ? [] : sealed.slice(begin, end + 1);
    const path = `${files.directory}/index/${file}`;
    const why =
      segments.length === 0
        ? "it belongs to segments that this log does not have"
        : await faultOf(files, path, { logId, segments });
    if (why === undefined) continue;
    const repaired = repair && (await moveAside(files, path));
    const what = `This index cannot be used: ${why}. It changes no answer.`;
    const remedy = repaired
      ? "It is in aside/. A process that needs it builds a new one."
      : "Nothing to do: a process that needs it builds a new one. `--repair` moves it aside.";
    findings.leftover({ path }, what, remedy, { repaired });
  }
}

async function indexFiles({ disk, directory }: LogFiles): Promise<string[]> {
  return (await listIfThere(disk, `${directory}/index`)).sort();
}

/** Returns the segments that can have an index. The last one is still being written, and has none. */
function sealedOf(segments: readonly ChainedSegment[]): SealedSegment[] {
  return segments.slice(0, -1).flatMap(({ number, header, end }) => {
    if (header === undefined || end === undefined) return [];
    const { length, position: last, crc } = end;
    return [{ number, first: header.after.position + 1, last, length, checksum: hexOf(crc) }];
  });
}

/** Reads every block of the index. Returns a description of its first fault, or undefined. */
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
    // Another process may have merged and removed the file.
    if (!(await disk.canOpen(path))) return undefined;
    if (isHoldfastError(error) || !isErrorLike(error)) throw error;
    return error.message.replace(/^The index \S+ cannot be used: /, "").replace(/\.$/, "");
  }
}
