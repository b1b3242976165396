// Reads a file of a ticket, or an output of its handler, without a claim: for people, and for
// producers that check what they sent.
import { holdfastError } from "../../errors.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { checkPayload, readPayload } from "../consume/payload-check.ts";
import { findFault } from "../deliver/file-check.ts";
import { findCommitted } from "../ledger/ledger.ts";
import type { ContentOptions } from "../model/handoff.ts";
import { ticketKind, type ManifestFile, type Ticket } from "../model/manifest.ts";
import { readChunks } from "../../part/read-chunks.ts";
import { findTicket } from "./find.ts";
import { noSuchTicket } from "./receipt.ts";
import type { FoundTicket } from "./tickets.ts";

/** How often a ticket is searched again because it moved before it was read. */
const searchesMax = 3;

/** Verifies the file before the first byte. Throws NO_SUCH_TICKET, NO_SUCH_FILE, PAYLOAD_MISMATCH. */
export async function* contentOf(
  box: Box,
  id: string,
  name: string,
  { signal = new AbortController().signal, output = false }: ContentOptions,
): AsyncGenerator<Uint8Array> {
  const { ticket, found } = await getTicket(box, id);
  const { manifest } = ticket;
  const file = output ? undefined : manifest.files.find((each) => each.name === name);
  const pieces =
    file === undefined ? await openOutput(box, ticket, found, name, signal) : await openFile(box, ticket, file, signal);
  for await (const piece of pieces) {
    signal.throwIfAborted();
    yield piece;
  }
}

async function openFile(
  box: Box,
  ticket: Ticket,
  file: ManifestFile,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  await checkPayload(box, { ...ticket, manifest: { ...ticket.manifest, files: [file] } }, signal);
  return readPayload(box, ticket, file);
}

/** The handler's outputs are in the ledger, beside its result. */
async function openOutput(
  box: Box,
  { manifest }: Ticket,
  { name: ticketName }: FoundTicket,
  name: string,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { id, key, files } = manifest;
  const entry = await findCommitted(box, box.layout.ledger(key, ticketName.replays));
  const outputs = entry?.committed.outputs ?? [];
  const output = outputs.find((each) => each.name === name);
  if (output === undefined || entry?.directory === undefined) {
    const names = (each: readonly { readonly name: string }[]): string => each.map((file) => file.name).join(", ");
    const others = outputs.length === 0 ? "and no outputs" : `and the outputs ${names(outputs)}`;
    const message = `Ticket ${id} has no file and no output ${JSON.stringify(name)}; it has the files ${names(files)} ${others}.`;
    throw holdfastError("NO_SUCH_FILE", message, { path: name });
  }
  const path = `${entry.directory}/outputs/${name}`;
  const fault = await findFault(readChunks(box.disk, path, { size: output.size }), output, signal);
  if (fault === undefined) return readChunks(box.disk, path, { size: output.size });
  const message = `The output ${JSON.stringify(name)} of ticket ${id} differs from its ledger entry: ${fault}.`;
  throw holdfastError("PAYLOAD_MISMATCH", message, { id, file: name });
}

/** Throws CORRUPT if the ticket is damaged. */
async function getTicket(box: Box, id: string): Promise<{ readonly ticket: Ticket; readonly found: FoundTicket }> {
  for (let search = 0; search < searchesMax; search++) {
    const found = await findTicket(box, id);
    const ticket = found && (await findRecord(box.disk, ticketKind, found.path));
    if (ticket !== undefined && found !== undefined) return { ticket, found };
  }
  throw noSuchTicket(box, id);
}
