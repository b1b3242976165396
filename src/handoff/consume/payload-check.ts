// Reads and checks the payload of a ticket: its files are in a directory of their own, or in the
// ticket if they are small.
import { readChunks } from "../../part/read-chunks.ts";
import type { Box } from "../box/box.ts";
import { checkFiles } from "../deliver/file-check.ts";
import type { ManifestFile, Ticket } from "../model/manifest.ts";

/** Throws PAYLOAD_MISMATCH for the first file that differs from the manifest. */
export async function checkPayload(box: Box, ticket: Ticket, signal: AbortSignal): Promise<void> {
  await checkFiles(ticket.manifest, (file) => readPayload(box, ticket, file), signal);
}

/** Yields the bytes of one file, in chunks. */
export async function* readPayload(box: Box, ticket: Ticket, { name, size }: ManifestFile): AsyncGenerator<Uint8Array> {
  const inline = ticket.inline?.[name];
  if (inline !== undefined) {
    yield Buffer.from(inline, "base64");
    return;
  }
  yield* readChunks(box.disk, `${box.layout.payload(ticket.manifest.id)}/${name}`, { isBulk: true, size });
}
