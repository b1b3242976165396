// Checking and reading what a ticket hands over. Nothing of it reaches a handler before every file has the size
// and the SHA-256 that the manifest says.
import { createHash } from "node:crypto";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Box } from "../box/box.ts";
import type { ManifestFile, Ticket } from "../model/manifest.ts";

const pieceBytes = 1024 * 1024;

/** PAYLOAD_MISMATCH, naming the first file that is not what it should be. */
export async function checkPayload(box: Box, ticket: Ticket, signal: AbortSignal): Promise<void> {
  for (const file of ticket.manifest.files) {
    const hash = createHash("sha256");
    let size = 0;
    try {
      for await (const chunk of readPayload(box, ticket, file)) {
        signal.throwIfAborted();
        hash.update(chunk);
        size += chunk.length;
        if (size > file.size) break;
      }
    } catch (error) {
      if (hasErrno(error, "ENOENT", "EISDIR")) throw mismatch(ticket, file, "it is not there");
      throw error;
    }
    if (size !== file.size)
      throw mismatch(
        ticket,
        file,
        `it has ${size > file.size ? "more than" : `${size} instead of`} ${file.size} bytes`,
      );
    const sha256 = hash.digest("hex");
    if (sha256 !== file.sha256) throw mismatch(ticket, file, `its SHA-256 is ${sha256} instead of ${file.sha256}`);
  }
}

/** The bytes of one file, in pieces. */
export async function* readPayload(box: Box, ticket: Ticket, { name }: ManifestFile): AsyncGenerator<Uint8Array> {
  const inline = ticket.inline?.[name];
  if (inline !== undefined) {
    yield Buffer.from(inline, "base64");
    return;
  }
  const file = await box.disk.open(`${box.layout.payload(ticket.manifest.id)}/${name}`, "read", { isBulk: true });
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

function mismatch({ manifest }: Ticket, { name }: ManifestFile, why: string): Error {
  const message = `The file ${JSON.stringify(name)} of ticket ${manifest.id} is not what its manifest says: ${why}.`;
  return holdfastError("PAYLOAD_MISMATCH", message, { id: manifest.id, file: name });
}
