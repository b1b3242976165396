// The one key of a path below a root, whatever spelling it came in and whatever exists there.
import { holdfastError } from "../errors.ts";

const pathLengthMax = 4096;
const segmentBytesMax = 255;
const absolute = /^([\\/]|[a-zA-Z]:)/;

export interface PathKeyOptions {
  /** False where the disk takes `A` and `a` for one name: then the key is folded too. */
  readonly caseSensitive: boolean;
}

/**
 * Slash-separated, without `.` and empty segments, NFC, never leaving the root; "" is the root
 * itself. INVALID_PATH for NUL, for `..` out of the root, for an absolute path, for half a
 * character, and for names that are too long.
 */
export function pathKey(path: string, options: PathKeyOptions): string {
  const key = normalise(cleanPath(path), options);
  // Again, because a fold may have made one; of the path itself too, whose beginning `..` may have
  // taken away.
  if (absolute.test(key) || absolute.test(normalise(path, options)))
    throw invalid(path, "it must be relative to the root");
  return key;
}

/** The same in the caller's own spelling: what to look for on the disk. */
export function cleanPath(path: string): string {
  if (path.length > pathLengthMax) throw invalid(path, `it is longer than ${pathLengthMax} characters`);
  if (path.includes("\0")) throw invalid(path, "it contains a NUL character");
  // On disk every half becomes the same replacement character: two keys would stand for one file.
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
  // Again, because `./c:/x` has become one.
  if (absolute.test(clean)) throw invalid(path, "it must be relative to the root");
  return clean;
}

function normalise(path: string, { caseSensitive }: PathKeyOptions): string {
  if (caseSensitive) return path.normalize("NFC");
  // Decomposed while it is folded: a mark that becomes a letter (the Greek iota below) must stand
  // behind all others by then. To lower case on both sides of the fold: ß and ẞ meet only in SS,
  // which ẞ reaches by way of ß.
  return path.normalize("NFD").toLowerCase().toUpperCase().toLowerCase().normalize("NFC");
}

/**
 * True when `inner` is `outer` or lies below it. The root reaches every path, and no name that
 * Holdfast locks for itself: those begin with a slash, which no key of a path does.
 */
export function isWithin(inner: string, outer: string): boolean {
  if (outer === "") return !inner.startsWith("/");
  return inner === outer || inner.startsWith(`${outer}/`);
}

function invalid(path: string, why: string): Error {
  const shown = path.length <= 200 ? path : `${path.slice(0, 200)}…`;
  return holdfastError("INVALID_PATH", `The path ${JSON.stringify(shown)} cannot be used: ${why}.`, { path });
}
