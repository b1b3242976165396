// Reading a file of a ticket, or an output of its handler, without a claim: for people, and for producers that want to see what they sent.
import { holdfastError } from "../../errors.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { checkPayload, findFault, readPayload } from "../consume/payload-check.ts";
import { findCommitted } from "../ledger/ledger.ts";
import type { ContentOptions } from "../model/handoff.ts";
import { ticketKind, type ManifestFile, type Ticket } from "../model/manifest.ts";
import { readChunks } from "../../part/read-chunks.ts";
import { findTicket } from "./find.ts";
import { noSuchTicket } from "./receipt.ts";
import type { FoundTicket } from "./tickets.ts";

/** A ticket may move between the look for it and the read of it, and be looked for again. */
const looksMax = 3;

/** Checked before the first byte is given. NO_SUCH_TICKET, NO_SUCH_FILE, PAYLOAD_MISMATCH. */
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

/** What the handler made is beside its result, in the ledger. */
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
  const fault = await findFault(readChunks(box.disk, path), output, signal);
  if (fault === undefined) return readChunks(box.disk, path);
  const message = `The output ${JSON.stringify(name)} of ticket ${id} is not what the ledger says: ${fault}.`;
  throw holdfastError("PAYLOAD_MISMATCH", message, { id, file: name });
}

/** CORRUPT for one that is damaged. */
async function getTicket(box: Box, id: string): Promise<{ readonly ticket: Ticket; readonly found: FoundTicket }> {
  for (let look = 0; look < looksMax; look++) {
    const found = await findTicket(box, id);
    const ticket = found && (await findRecord(box.disk, ticketKind, found.path));
    if (ticket !== undefined && found !== undefined) return { ticket, found };
  }
  throw noSuchTicket(box, id);
}
