// The audit of a hand-off crew: it reads the two boxes from the disk after the run, and compares them with what was
// published and acknowledged.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { findTicketName } from "../../../src/handoff/model/ticket-name.ts";
import { allDocuments, type Document, type DocumentPlan } from "./documents.ts";
import type { Result } from "./orders.ts";
import type { HandoffRun } from "./run.ts";
import { boxName, nextBoxName } from "./steps.ts";

interface Entry {
  readonly key: string;
  readonly id: string;
  readonly result: Result;
  readonly outputs: Readonly<Record<string, string>>;
}

/** Returns one line for each broken promise. */
export function auditHandoff(directory: string, plan: DocumentPlan, run: HandoffRun): string[] {
  const box = `${directory}/${boxName}`;
  const documents = allDocuments(plan);
  const ledger = readLedger(box);
  const wrong = [
    ...auditLedger(documents, ledger, run),
    ...auditTickets(box, documents, ledger),
    ...auditSent(`${directory}/${nextBoxName}`, documents),
  ];
  for (const { key } of documents)
    if (!run.published.has(key)) wrong.push(`${key} was never acknowledged as published`);
  return wrong;
}

function auditLedger(documents: readonly Document[], entries: readonly Entry[], run: HandoffRun): string[] {
  const wrong: string[] = [];
  const byKey = new Map<string, Entry>();
  for (const entry of entries) {
    if (byKey.has(entry.key)) wrong.push(`${entry.key} is twice in the ledger`);
    byKey.set(entry.key, entry);
  }
  for (const { key, isPoison, outputs } of documents) {
    const entry = byKey.get(key);
    byKey.delete(key);
    if (isPoison) {
      if (entry !== undefined) wrong.push(`${key} is in the ledger, though it kills each worker`);
      continue;
    }
    if (entry === undefined) {
      wrong.push(`${key} is not in the ledger`);
      continue;
    }
    const acknowledged = run.committed.get(key);
    if (acknowledged !== undefined && JSON.stringify(acknowledged) !== JSON.stringify(entry.result))
      wrong.push(
        `${key} was committed with ${JSON.stringify(acknowledged)}, and ${JSON.stringify(entry.result)} is there`,
      );
    const wanted = Object.fromEntries([...outputs].sort().map((name) => [name, `${name} of ${key}`]));
    if (JSON.stringify(entry.outputs) !== JSON.stringify(wanted))
      wrong.push(`${key} has the outputs ${JSON.stringify(entry.outputs)}`);
  }
  for (const key of byKey.keys()) wrong.push(`${key} is in the ledger, and no document has that key`);
  return wrong;
}

function auditTickets(box: string, documents: readonly Document[], ledger: readonly Entry[]): string[] {
  const wrong: string[] = [];
  const unsettled = ["incoming", "delayed", "parked", "processing", "staging"].flatMap((room) => filesUnder(box, room));
  const inLanes = filesUnder(box, "lanes").filter((path) => findTicketName(baseOf(path)) !== undefined);
  for (const path of [...unsettled, ...inLanes]) wrong.push(`${path} was not settled`);
  const committed = new Set(ledger.map(({ id }) => id));
  const archived = filesUnder(box, "archive").map(idOf);
  const failed = filesUnder(box, "error");
  const poisoned = documents.filter(({ isPoison }) => isPoison).map(({ key }) => key);
  const failedKeys = failed.map((path) => keyOf(`${box}/${path}`));
  if (JSON.stringify([...failedKeys].sort()) !== JSON.stringify([...poisoned].sort()))
    wrong.push(`dead letters are ${failedKeys.join(", ")}; they should be ${poisoned.join(", ")}`);
  for (const [index, key] of failedKeys.entries())
    if (!poisoned.includes(key)) wrong.push(`${key} failed: ${notesOf(box, failed[index] ?? "").join("; ")}`);
  if (new Set(archived).size !== archived.length) wrong.push("a ticket is twice in the archive");
  for (const id of archived) if (!committed.delete(id)) wrong.push(`ticket ${id} is in the archive without a result`);
  for (const id of committed) wrong.push(`ticket ${id} has a result and is not in the archive`);
  // The unpublished files of killed processes are gone, or lie in the trash to be removed.
  const known = new Set([...archived, ...[...failed, ...filesUnder(box, "trash")].map(idOf)]);
  for (const path of filesUnder(box, "data"))
    if (!known.has(path.split("/")[2] ?? "")) wrong.push(`${path} belongs to no ticket`);
  return wrong;
}

/** Returns the reasons why a ticket was not done, attempt by attempt. */
function notesOf(box: string, path: string): string[] {
  const notes = filesUnder(box, "notes").filter((note) => baseOf(note).startsWith(`${idOf(path)}-`));
  return notes.map((note) => JSON.stringify(bodyOf(`${box}/${note}`)));
}

function auditSent(next: string, documents: readonly Document[]): string[] {
  const sources = filesUnder(next, "incoming").map((path) => metaOf(`${next}/${path}`));
  const wanted = documents.filter(({ isSent, isPoison }) => isSent && !isPoison).map(({ key }) => key);
  const lost = wanted.filter((key) => !sources.includes(key)).map((key) => `what ${key} sent was lost`);
  const doubled = sources.filter((key, index) => sources.indexOf(key) !== index).map((key) => `${key} has sent twice`);
  const foreign = sources.filter((key) => !wanted.includes(key)).map((key) => `${key} was not to send anything`);
  return [...lost, ...doubled, ...foreign];
}

function readLedger(box: string): Entry[] {
  return readdirSync(`${box}/ledger`).flatMap((shard) =>
    readdirSync(`${box}/ledger/${shard}`).map((name) => {
      const path = `${box}/ledger/${shard}/${name}`;
      const isDirectory = statSync(path).isDirectory();
      const { key, id, result } = bodyOf(isDirectory ? `${path}/record.json` : path) as Omit<Entry, "outputs">;
      const names = isDirectory ? filesUnder(path, "outputs") : [];
      const outputs = names.sort().map((each) => [baseOf(each), readFileSync(`${path}/${each}`, "utf8")] as const);
      return { key, id, result, outputs: Object.fromEntries(outputs) };
    }),
  );
}

/** The paths are relative to `directory`. */
function filesUnder(directory: string, room: string): string[] {
  try {
    return readdirSync(`${directory}/${room}`, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath}/${entry.name}`.slice(directory.length + 1));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function idOf(path: string): string {
  return baseOf(path).split("-")[0] ?? "";
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function keyOf(path: string): string {
  return (bodyOf(path) as { readonly key: string }).key;
}

function metaOf(path: string): string {
  return (bodyOf(path) as { readonly meta: string }).meta;
}

function bodyOf(path: string): unknown {
  return (JSON.parse(readFileSync(path, "utf8")) as { readonly body: unknown }).body;
}
