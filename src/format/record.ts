// The envelope of every small file that Holdfast writes: one line of JSON that names its kind,
// format and author, and ends in a checksum.
import { holdfastError } from "../errors.ts";
import { checksumOf } from "./checksum.ts";
import { formatVersion, packageVersion } from "./version.ts";

/** No record is larger. */
export const recordBytesMax: number = 4 * 1024 * 1024;

/** A kind of record: a small file with a name, a format version and a checksum. */
export interface RecordKind<T> {
  /** The name of the kind, which is stored in the record. */
  readonly kind: string;
  /** Validates and returns a parsed body. Throws any error for a body that it does not understand. */
  readonly decode: (body: unknown) => T;
  /** Returns the format that a body needs, if older releases cannot read it. Default: the current format. */
  formatOf?(this: void, body: T): number;
  /** The newest format that `decode` understands. Default: the current format. */
  readonly newestFormat?: number;
  /**
   * A directory of this name has a meaning: reading it throws IO_ERROR (EISDIR) instead of CORRUPT.
   * Default false.
   */
  readonly mayBeDirectory?: true;
}

const tail = /,"crc":"([0-9a-f]{8})"\}\n$/;

/**
 * Returns the bytes of a record. It decodes them first: nothing unreadable may ever be written.
 * `isChecked`: the caller has done that.
 */
export function encodeRecord<T>(
  kind: RecordKind<T>,
  body: T,
  { isChecked = false, bytesMax = recordBytesMax }: { readonly isChecked?: boolean; readonly bytesMax?: number } = {},
): Uint8Array {
  const format = kind.formatOf?.(body) ?? formatVersion;
  const head = JSON.stringify({ kind: kind.kind, format, by: packageVersion, body }).slice(0, -1);
  const bytes = Buffer.from(`${head},"crc":"${checksumOf(head)}"}\n`);
  if (bytes.length > bytesMax)
    throw holdfastError(
      "TOO_LARGE",
      `A ${kind.kind} record of ${bytes.length} bytes is over the limit of ${bytesMax} bytes.`,
      {
        limit: bytesMax,
        actual: bytes.length,
      },
    );
  if (!isChecked) decodeRecord(kind, bytes, "(just encoded)");
  return bytes;
}

/**
 * Returns the body of a record. Throws CORRUPT if it is torn, altered or of another kind, and
 * NEWER_FORMAT with the version that wrote it.
 */
export function decodeRecord<T>(kind: RecordKind<T>, bytes: Uint8Array, path: string): T {
  const envelope = readEnvelope(kind, bytes, path);
  // Check the format first: a newer release may have changed everything else.
  const { newestFormat = formatVersion } = kind;
  if (typeof envelope.format === "number" && envelope.format > newestFormat) throw newer(kind, envelope, path);
  if (envelope.kind !== kind.kind) throw corrupt(kind, path, `it is a ${JSON.stringify(envelope.kind)} record`);
  try {
    return kind.decode(envelope.body);
  } catch (cause) {
    throw corrupt(kind, path, "its body is invalid", cause);
  }
}

/** Returns the fields around a body of any format: `kind`, `format`, `by`. Throws CORRUPT. */
export function readEnvelope(
  kind: Pick<RecordKind<unknown>, "kind">,
  bytes: Uint8Array,
  path: string,
): Readonly<Record<string, unknown>> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const crc = tail.exec(text);
  if (crc === null) throw corrupt(kind, path, "it does not end in a checksum, so it is torn or foreign");
  if (checksumOf(text.slice(0, crc.index)) !== crc[1])
    throw corrupt(kind, path, "its checksum does not match its content");
  return parse(kind, text, path);
}

/**
 * True if these bytes are a write that did not fully reach the disk: they end before their
 * checksum, or contain zeros. An altered record looks different.
 */
export function isTorn(bytes: Uint8Array): boolean {
  return !tail.test(Buffer.from(bytes.subarray(-32)).toString("latin1")) || bytes.includes(0);
}

function parse(kind: Pick<RecordKind<unknown>, "kind">, text: string, path: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (cause) {
    throw corrupt(kind, path, "it is not JSON", cause);
  }
}

function corrupt(kind: Pick<RecordKind<unknown>, "kind">, path: string, why: string, cause?: unknown): Error {
  const message = `${path} is not a valid ${kind.kind} record: ${why}. Restore it from a backup, or move it away.`;
  return holdfastError("CORRUPT", message, { path }, cause);
}

function newer(kind: RecordKind<unknown>, envelope: Record<string, unknown>, path: string): Error {
  const writtenBy = typeof envelope.by === "string" ? envelope.by : "an unknown version";
  const message = `${path} is a ${kind.kind} record of format ${String(envelope.format)}, written by Holdfast ${writtenBy}; this is ${packageVersion}, which knows format ${kind.newestFormat ?? formatVersion}. Upgrade this installation.`;
  return holdfastError("NEWER_FORMAT", message, { path, writtenBy });
}
