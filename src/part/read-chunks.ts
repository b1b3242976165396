// The bytes of a file, piece by piece, as a body for another one.
import { holdfastError } from "../errors.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";

/** One read of the disk. */
const pieceBytes = 1024 * 1024;

/** Opened at the first piece, closed at the end or when the reader stops. */
export async function* readChunks(
  disk: Disk,
  path: string,
  options: { readonly isBulk?: boolean } = {},
): AsyncGenerator<Uint8Array> {
  const file = await disk.open(path, "read", options);
  try {
    for (let offset = 0; ;) {
      const piece = await file.read(offset, pieceBytes);
      if (piece.length === 0) return;
      yield piece;
      offset += piece.length;
    }
  } finally {
    await file.close();
  }
}

/** A file that a caller has named, with its size. NO_SUCH_FILE. */
export async function bodyOfFile(
  disk: Disk,
  path: string,
): Promise<{ size: number; body: AsyncGenerator<Uint8Array> }> {
  const stat = await disk.findStat(path);
  // A pipe or a device cannot be read from a place: its bytes come in on stdin.
  if (stat?.kind !== "file")
    throw noSuchFile(
      path,
      stat === undefined ? "is not there" : stat.kind === "directory" ? "is a directory" : "is not a file",
    );
  return { size: stat.size, body: readNamed(disk, path) };
}

/** NO_SUCH_FILE. */
export async function* readNamed(disk: Disk, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* readChunks(disk, path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ENOTDIR", "EISDIR")) throw error;
    throw noSuchFile(path, hasErrno(error, "EISDIR") ? "is a directory" : "is not there", error);
  }
}

function noSuchFile(path: string, what: string, cause?: unknown): Error {
  return holdfastError("NO_SUCH_FILE", `${path} ${what}. Name a file.`, { path }, cause);
}
