// The unique key of a path below a root, however it is spelled and whatever exists there.
import { holdfastError } from "../errors.ts";

export const pathLengthMax = 4096;
const segmentBytesMax = 255;
const absolute = /^([\\/]|[a-zA-Z]:)/;

export interface PathKeyOptions {
  /** False where the disk treats `A` and `a` as one name: then the key is case-folded too. */
  readonly caseSensitive: boolean;
}

/**
 * Returns the key: slash-separated, without `.` and empty segments, NFC, never outside the root; ""
 * is the root itself. Throws INVALID_PATH for NUL, for `..` out of the root, for an absolute path,
 * for an unpaired surrogate, and for names that are too long.
 */
export function pathKey(path: string, options: PathKeyOptions): string {
  const key = normalise(cleanPath(path), options);
  // Check again, because folding may have produced an absolute path. Check the original path too:
  // `..` may have removed its beginning.
  if (absolute.test(key) || absolute.test(normalise(path, options)))
    throw invalid(path, "it must be relative to the root");
  return key;
}

/** Like `pathKey`, in the caller's own spelling: the path to use on the disk. */
export function cleanPath(path: string): string {
  if (path.length > pathLengthMax) throw invalid(path, `it is longer than ${pathLengthMax} characters`);
  if (path.includes("\0")) throw invalid(path, "it contains a NUL character");
  // On disk every unpaired surrogate becomes the same replacement character: two keys would stand
  // for one file.
  if (/\p{Surrogate}/u.test(path)) throw invalid(path, "it contains half a character (an unpaired surrogate)");
  if (absolute.test(path.normalize("NFC"))) throw invalid(path, "it must be relative to the root");
  const segments: string[] = [];
  for (const segment of path.split(/[\\/]/)) {
    if (segment === "" || segment === ".") continue;
    if (segment === "..") {
      if (segments.pop() === undefined) throw invalid(path, "it leads out of the root");
      continue;
    }
    if (Buffer.byteLength(segment) > segmentBytesMax)
      throw invalid(path, `a name in it has over ${segmentBytesMax} bytes`);
    segments.push(segment);
  }
  const clean = segments.join("/");
  // Check again, because the clean path may be absolute now: `./c:/x` becomes one.
  if (absolute.test(clean)) throw invalid(path, "it must be relative to the root");
  return clean;
}

function normalise(path: string, { caseSensitive }: PathKeyOptions): string {
  if (caseSensitive) return path.normalize("NFC");
  // Fold in decomposed form: a mark that becomes a letter (the Greek iota subscript) must come
  // after all other marks by then. Lower-case on both sides of the fold: ß and ẞ only match as SS,
  // which ẞ reaches via ß.
  return path.normalize("NFD").toLowerCase().toUpperCase().toLowerCase().normalize("NFC");
}

/**
 * True if `inner` is `outer` or lies below it. The root contains every path, but none of the names
 * that Holdfast locks internally: those begin with a slash, and no path key does.
 */
export function isWithin(inner: string, outer: string): boolean {
  if (outer === "") return !inner.startsWith("/");
  return inner === outer || inner.startsWith(`${outer}/`);
}

function invalid(path: string, why: string): Error {
  const shown = path.length <= 200 ? path : `${path.slice(0, 200)}…`;
  return holdfastError("INVALID_PATH", `The path ${JSON.stringify(shown)} cannot be used: ${why}.`, { path });
}
