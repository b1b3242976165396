// Reads a file in pieces, as a body for another one.
import { holdfastError } from "../errors.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Disk, OpenFileOptions } from "../ports/disk.ts";

/** One read of the disk. */
const pieceBytes = 1024 * 1024;

export interface ReadOptions extends OpenFileOptions {
  /** The expected size: a small file needs no large buffer. The file is read to its end in any case. */
  readonly size?: number;
}

/** Returns all bytes of a small file. */
export async function readWhole(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const read: Uint8Array[] = [];
  for await (const piece of pieces) read.push(piece);
  return Buffer.concat(read);
}

/** Opens the file at the first piece, closes it at the end or when the reader stops. */
export async function* readChunks(
  disk: Disk,
  path: string,
  { size = Infinity, ...options }: ReadOptions = {},
): AsyncGenerator<Uint8Array> {
  const file = await disk.open(path, "read", options);
  try {
    for (let offset = 0; ;) {
      // Request one byte more than expected: a short read is then the end, without another read.
      const length = offset <= size ? Math.min(pieceBytes, size - offset + 1) : pieceBytes;
      const piece = await file.read(offset, length);
      if (piece.length > 0) yield piece;
      if (piece.length < length) return;
      offset += piece.length;
    }
  } finally {
    await file.close();
  }
}

/** Opens a file that a caller named, as a body with its size. Throws NO_SUCH_FILE. */
export async function bodyOfFile(
  disk: Disk,
  path: string,
): Promise<{ size: number; body: AsyncGenerator<Uint8Array> }> {
  const stat = await disk.findStat(path);
  // A pipe or a device cannot be read at an offset: use stdin for it.
  if (stat?.kind !== "file")
    throw noSuchFile(
      path,
      stat === undefined ? "does not exist" : stat.kind === "directory" ? "is a directory" : "is not a file",
    );
  return { size: stat.size, body: readNamed(disk, path) };
}

/** Throws NO_SUCH_FILE. */
export async function* readNamed(disk: Disk, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* readChunks(disk, path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ENOTDIR", "EISDIR")) throw error;
    throw noSuchFile(path, hasErrno(error, "EISDIR") ? "is a directory" : "does not exist", error);
  }
}

function noSuchFile(path: string, what: string, cause?: unknown): Error {
  return holdfastError("NO_SUCH_FILE", `${path} ${what}. Name a file.`, { path }, cause);
}
