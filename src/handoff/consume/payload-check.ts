// Checking and reading what a ticket hands over. Nothing of it reaches a handler before every file has the size
// and the SHA-256 that the manifest says.
import { createHash } from "node:crypto";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { readChunks } from "../../part/read-chunks.ts";
import type { Box } from "../box/box.ts";
import type { ManifestFile, Ticket } from "../model/manifest.ts";

/** PAYLOAD_MISMATCH, naming the first file that is not what it should be. */
export async function checkPayload(box: Box, ticket: Ticket, signal: AbortSignal): Promise<void> {
  for (const file of ticket.manifest.files) {
    const fault = await findFault(readPayload(box, ticket, file), file, signal);
    if (fault === undefined) continue;
    const { id } = ticket.manifest;
    const message = `The file ${JSON.stringify(file.name)} of ticket ${id} is not what its manifest says: ${fault}.`;
    throw holdfastError("PAYLOAD_MISMATCH", message, { id, file: file.name });
  }
}

/** In which way these bytes are not what is said of them; undefined when they are. */
export async function findFault(
  bytes: AsyncIterable<Uint8Array>,
  file: Pick<ManifestFile, "size" | "sha256">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const hash = createHash("sha256");
  let size = 0;
  try {
    for await (const chunk of bytes) {
      signal.throwIfAborted();
      hash.update(chunk);
      size += chunk.length;
      if (size > file.size) break;
    }
  } catch (error) {
    if (hasErrno(error, "ENOENT", "EISDIR")) return "it is not there";
    throw error;
  }
  if (size !== file.size) return `it has ${size > file.size ? "more than" : `${size} instead of`} ${file.size} bytes`;
  const sha256 = hash.digest("hex");
  return sha256 === file.sha256 ? undefined : `its SHA-256 is ${sha256} instead of ${file.sha256}`;
}

/** The bytes of one file, in pieces. */
export async function* readPayload(box: Box, ticket: Ticket, { name }: ManifestFile): AsyncGenerator<Uint8Array> {
  const inline = ticket.inline?.[name];
  if (inline !== undefined) {
    yield Buffer.from(inline, "base64");
    return;
  }
  yield* readChunks(box.disk, `${box.layout.payload(ticket.manifest.id)}/${name}`, { isBulk: true });
}
