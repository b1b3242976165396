// Reads a file of a ticket, or an output of its handler, without a claim.
import { holdfastError } from "../../errors.ts";
import { checkFiles, findFault } from "../../handoff/deliver/file-check.ts";
import type { ContentOptions, OutputFile } from "../../handoff/model/handoff.ts";
import { keyOf } from "../connection/text.ts";
import { readPieces } from "./payload-rows.ts";
import type { PgBox } from "./pg-box.ts";
import { readFile } from "./settler.ts";
import { claimColumns, doneJoin, manifestOf, type ClaimRow } from "./ticket-rows.ts";

interface Row extends ClaimRow, Record<string, unknown> {
  readonly outputs: readonly OutputFile[] | null;
  readonly owner: string | null;
}

/** Verifies the file before the first byte. Throws NO_SUCH_TICKET, NO_SUCH_FILE, PAYLOAD_MISMATCH, CORRUPT. */
export async function* readContent(
  box: PgBox,
  id: string,
  name: string,
  { signal = new AbortController().signal, output = false }: ContentOptions,
): AsyncGenerator<Uint8Array> {
  const [row] = await box.database.query<Row>(
    `select ${claimColumns}, d.outputs, d.owner from hf_ticket t ${doneJoin} where t.p = $1 and t.id = $2`,
    [box.p, keyOf(id)],
  );
  if (row === undefined) throw noSuchTicket(box.directory, id);
  for await (const piece of await openContent(box, row, name, output, signal)) {
    signal.throwIfAborted();
    yield piece;
  }
}

export function noSuchTicket(directory: string, id: string): Error {
  const message = `There is no ticket ${id} in ${directory}. Was it published in another box, or removed because its retention ended?`;
  return holdfastError("NO_SUCH_TICKET", message, { id });
}

async function openContent(
  box: PgBox,
  row: Row,
  name: string,
  isOutput: boolean,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { id } = row;
  const manifest = readManifest(box, row);
  const file = isOutput ? undefined : manifest.files.find((each) => each.name === name);
  if (file !== undefined) {
    const read = (): AsyncIterable<Uint8Array> => readFile(box, { row, manifest }, file);
    await checkFiles({ id, files: [file] }, read, signal);
    return read();
  }
  const { outputs, owner } = row;
  const found = outputs?.find((each) => each.name === name);
  if (found === undefined || owner === null) {
    const names = (each: readonly OutputFile[] | null): string => each?.map((one) => one.name).join(", ") || "none";
    const message = `Ticket ${id} has no file and no output ${JSON.stringify(name)}; its files are ${names(manifest.files)}, its outputs ${names(outputs)}.`;
    throw holdfastError("NO_SUCH_FILE", message, { path: name });
  }
  const fault = await findFault(readPieces(box, owner, found), found, signal);
  if (fault === undefined) return readPieces(box, owner, found);
  const message = `The output ${JSON.stringify(name)} of ticket ${id} differs from its ledger entry: ${fault}.`;
  throw holdfastError("PAYLOAD_MISMATCH", message, { id, file: name });
}

function readManifest(box: PgBox, row: Row): ReturnType<typeof manifestOf> {
  try {
    return manifestOf(row);
  } catch (error) {
    const path = `${box.directory} ${row.id}`;
    throw holdfastError("CORRUPT", `${path}: the row of this ticket is damaged.`, { path }, error);
  }
}
