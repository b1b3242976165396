// The entries of a backup: each file, directory and link of the store, and where its bytes are.
import { countOf, listOf, objectOf, textOf } from "../format/decoding.ts";
import { holdfastError } from "../errors.ts";

/** Bytes of a file: a range of a blob. */
export type Piece = readonly [blob: string, offset: number, length: number];

/** A file. Its content is that of its pieces, in order. */
export interface FileEntry {
  readonly kind: "file";
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
  readonly pieces: readonly Piece[];
  /** Identifies the content of the file in the store. Absent: the next backup reads the file again. */
  readonly stamp?: string;
  readonly mode?: number;
}

/** The entry of a backup for one path below the store. */
export type Entry =
  | FileEntry
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  /** A second name of another file of this backup. */
  | { readonly kind: "same"; readonly path: string; readonly of: string }
  /** The lock table of a ground: only its highest number. */
  | { readonly kind: "table"; readonly path: string; readonly number: number; readonly deltas: boolean };

/** One line of an index. */
export function encodeEntry(entry: Entry): string {
  const { path: p } = entry;
  switch (entry.kind) {
    case "file": {
      const { size, sha256, pieces, stamp, mode } = entry;
      return JSON.stringify({ p, size, sha256, pieces, stamp, mode });
    }
    case "directory":
      return JSON.stringify({ p, directory: true });
    case "link":
      return JSON.stringify({ p, link: entry.target });
    case "same":
      return JSON.stringify({ p, same: entry.of });
    case "table":
      return JSON.stringify({ p, table: entry.number, deltas: entry.deltas });
  }
}

/** Throws CORRUPT, also for a path that leads out of the store. */
export function decodeEntry(line: string, where: string): Entry {
  try {
    return entryOf(objectOf(JSON.parse(line)));
  } catch (cause) {
    const message = `${where} has an entry that is not valid: this backup cannot be restored. Restore another one.`;
    throw holdfastError("CORRUPT", message, { path: where }, cause);
  }
}

function entryOf(fields: Readonly<Record<string, unknown>>): Entry {
  const path = safePath(fields.p);
  if (fields.directory === true) return { kind: "directory", path };
  if (fields.link !== undefined) return { kind: "link", path, target: textOf(fields.link) };
  if (fields.same !== undefined) return { kind: "same", path, of: safePath(fields.same) };
  if (fields.table !== undefined)
    return { kind: "table", path, number: countOf(fields.table), deltas: fields.deltas === true };
  const { size, sha256, pieces, stamp, mode } = fields;
  return {
    kind: "file",
    path,
    size: countOf(size),
    sha256: blobOf(sha256),
    pieces: listOf(pieces, (piece) => {
      const [blob, offset, length] = listOf(piece, (each) => each);
      return [blobOf(blob), countOf(offset), countOf(length)] as const;
    }),
    ...(stamp === undefined ? {} : { stamp: textOf(stamp) }),
    ...(mode === undefined ? {} : { mode: countOf(mode) & 0o777 }),
  };
}

/** Accepts only a relative path without dots: a target may have been made by somebody else. */
function safePath(value: unknown): string {
  const path = textOf(value);
  const isSafe = path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && !part.includes("\0"));
  if (!isSafe || (process.platform === "win32" && /[\\:]/.test(path))) throw new TypeError("not a path in a store");
  return path;
}

/** The name of a blob is the SHA-256 of its bytes. */
export function blobOf(value: unknown): string {
  const name = textOf(value);
  if (!/^[0-9a-f]{64}$/.test(name)) throw new TypeError("not the name of a blob");
  return name;
}
