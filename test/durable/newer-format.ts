// Records as a later release would have written them.
import { checksumOf } from "../../src/format/checksum.ts";

/** The same record in a newer format, written by version 9.9.9. */
export function asNewerFormat(record: Uint8Array): Uint8Array {
  const envelope = JSON.parse(Buffer.from(record).toString()) as Record<string, unknown>;
  const { crc: _, ...rest } = { ...envelope, format: Number(envelope.format) + 9, by: "9.9.9" } as Record<
    string,
    unknown
  >;
  const head = JSON.stringify(rest).slice(0, -1);
  return Buffer.from(`${head},"crc":"${checksumOf(head)}"}\n`);
}
