// The envelope of every small file that Holdfast writes: one line of JSON that names its kind,
// format and author, and ends in a checksum.
import { holdfastError } from "../errors.ts";
import { checksumOf } from "./checksum.ts";
import { formatVersion, packageVersion } from "./version.ts";

/** Nothing that fits into a record needs more; what does need more is not a record. */
export const recordBytesMax: number = 4 * 1024 * 1024;

/**
 * One kind of record. `decode` narrows what was parsed, and throws (any error) for what it does not
 * understand.
 */
export interface RecordKind<T> {
  readonly kind: string;
  readonly decode: (body: unknown) => T;
}

const tail = /,"crc":"([0-9a-f]{8})"\}\n$/;

/**
 * The bytes of a record, read back before they are given out: what cannot be read must never be
 * written. `isChecked`: the caller has done that.
 */
export function encodeRecord<T>(
  kind: RecordKind<T>,
  body: T,
  { isChecked = false, bytesMax = recordBytesMax }: { readonly isChecked?: boolean; readonly bytesMax?: number } = {},
): Uint8Array {
  const head = JSON.stringify({ kind: kind.kind, format: formatVersion, by: packageVersion, body }).slice(0, -1);
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
 * What a record says. CORRUPT when it is torn, altered or of another kind; NEWER_FORMAT, naming the
 * version that wrote it.
 */
export function decodeRecord<T>(kind: RecordKind<T>, bytes: Uint8Array, path: string): T {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const crc = tail.exec(text);
  if (crc === null) throw corrupt(kind, path, "it does not end in a checksum, so it is torn or foreign");
  if (checksumOf(text.slice(0, crc.index)) !== crc[1])
    throw corrupt(kind, path, "its checksum does not fit its content");
  const envelope = parse(kind, text, path);
  // Before anything else is believed: a newer release may have changed all the rest.
  if (typeof envelope.format === "number" && envelope.format > formatVersion) throw newer(kind, envelope, path);
  if (envelope.kind !== kind.kind) throw corrupt(kind, path, `it is a ${JSON.stringify(envelope.kind)} record`);
  try {
    return kind.decode(envelope.body);
  } catch (cause) {
    throw corrupt(kind, path, "its body does not make sense", cause);
  }
}

/**
 * Whether these bytes are a write that did not reach the disk: they end before their checksum, or
 * contain zeros. A record that was altered looks otherwise.
 */
export function isTorn(bytes: Uint8Array): boolean {
  return !tail.test(Buffer.from(bytes.subarray(-32)).toString("latin1")) || bytes.includes(0);
}

function parse(kind: RecordKind<unknown>, text: string, path: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (cause) {
    throw corrupt(kind, path, "it is not JSON", cause);
  }
}

function corrupt(kind: RecordKind<unknown>, path: string, why: string, cause?: unknown): Error {
  const message = `${path} is not a valid ${kind.kind} record: ${why}. Restore it from a backup, or move it away.`;
  return holdfastError("CORRUPT", message, { path }, cause);
}

function newer(kind: RecordKind<unknown>, envelope: Record<string, unknown>, path: string): Error {
  const writtenBy = typeof envelope.by === "string" ? envelope.by : "an unknown version";
  const message = `${path} is a ${kind.kind} record of format ${String(envelope.format)}, written by Holdfast ${writtenBy}; this is ${packageVersion}, which knows format ${formatVersion}. Upgrade this installation.`;
  return holdfastError("NEWER_FORMAT", message, { path, writtenBy });
}
