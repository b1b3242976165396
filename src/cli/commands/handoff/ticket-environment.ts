// Passes a ticket to a command in environment variables, and in a file if it does not fit into
// them.
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { directoryOf, openPorts, removeTree } from "../../../durable/index.ts";
import type { Delivery } from "../../../handoff/index.ts";
import { nativePath } from "../../windows/native-path.ts";

/**
 * The maximum size of a variable. Windows allows 32,767 characters, Linux 131,072 bytes including
 * the name.
 */
const variableBytesMax = 32_000;

export interface TicketEnvironment extends AsyncDisposable {
  readonly variables: Readonly<Record<string, string>>;
  /** Why a variable is not set, for people. */
  readonly notes: readonly string[];
}

/** Dispose of it when the command has ended. */
export async function environmentOf(delivery: Delivery, box: string): Promise<TicketEnvironment> {
  const paths: string[] = [];
  for (const { name } of delivery.files) paths.push(await delivery.path(name));
  const { id, key, attempt, group, meta } = delivery;
  const wanted = {
    HOLDFAST_BOX: nativePath(box),
    HOLDFAST_ID: id,
    HOLDFAST_KEY: key,
    HOLDFAST_ATTEMPT: String(attempt),
    HOLDFAST_FILE: nativePath(paths[0] ?? ""),
    HOLDFAST_FILES: nativePath(dirname(paths[0] ?? ".")),
    HOLDFAST_GROUP: group ?? "",
    HOLDFAST_META: meta === undefined ? "" : JSON.stringify(meta),
  };
  const faults = Object.entries(wanted).flatMap(([name, value]) => {
    const fault = faultOf(value);
    return fault === undefined ? [] : [{ name, fault }];
  });
  // Set to an empty text, so that the command does not take a value from our own environment for
  // the ticket's.
  const variables = { ...wanted, HOLDFAST_TICKET: "", ...Object.fromEntries(faults.map(({ name }) => [name, ""])) };
  if (faults.length === 0) return { variables, notes: [], [Symbol.asyncDispose]: async () => undefined };
  const file = await writeTemporary(JSON.stringify({ id, key, attempt, group, meta, files: delivery.files }));
  const notes = faults.map(
    ({ name, fault }) => `${name} is empty, because ${fault}. The file that HOLDFAST_TICKET names has it, as JSON`,
  );
  return {
    variables: { ...variables, HOLDFAST_TICKET: nativePath(file.path) },
    notes,
    [Symbol.asyncDispose]: file.remove,
  };
}

function faultOf(value: string): string | undefined {
  if (value.includes("\0")) return "a variable cannot hold a NUL";
  const size = Buffer.byteLength(value);
  return size > variableBytesMax ? `it has ${size} bytes, and a variable at most ${variableBytesMax}` : undefined;
}

/** Only this user can read the file. */
async function writeTemporary(text: string): Promise<{ path: string; remove: () => Promise<void> }> {
  const directory = `${directoryOf(tmpdir())}/holdfast-ticket-${randomBytes(12).toString("hex")}`;
  const path = `${directory}/ticket.json`;
  const { disk } = await openPorts(directory);
  await disk.mkdir(directory);
  await disk.createFile(path, Buffer.from(text), { sync: false, mode: 0o600 });
  // An error is ignored: the command has ended, and its exit code counts even if the file cannot be
  // removed.
  return { path, remove: () => removeTree(disk, directory).catch(() => undefined) };
}
