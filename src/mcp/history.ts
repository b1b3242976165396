// What happened to files, in words: who changed what, and how a text differs from the one that the
// model has seen.
import type { Change } from "../files/index.ts";
import { Refusal } from "./answer.ts";
import type { Desk } from "./desk.ts";
import { diffOf } from "./diff.ts";
import { bounded, fileBytesMax } from "./limits.ts";

export function authorOf({ by }: Change): string {
  if (by === undefined) return "unknown";
  return by.name ?? `process ${by.pid} on ${by.host}`;
}

/** One line. */
export function lineOf(change: Change): string {
  const { number, kind, path, from, at, damaged } = change;
  const what = damaged ?? `${kind} ${path === "" ? "." : path}${from === undefined ? "" : ` (was ${from})`}`;
  return `#${number} ${at?.toISOString() ?? "-"} ${authorOf(change)}: ${what}`;
}

export function factsOf(change: Change): Record<string, unknown> {
  const { number, kind, path, from, at } = change;
  return { number, kind, path, from, at, by: authorOf(change) };
}

/**
 * The refusal of a call that would have overwritten a change unseen: the stamp of the file now, the
 * last changes of it, and what differs from the text that this connection has read.
 */
export async function conflictOf(desk: Desk, path: string, seenStamp: string | null): Promise<Refusal> {
  const files = await desk.files();
  const now = await files.stat(path);
  const changes = await files.history({ under: path, limit: 5 });
  const seen = seenStamp === null ? undefined : desk.seen.find(path, seenStamp);
  const isShown = now !== undefined && !now.directory && now.size <= fileBytesMax;
  const diff = seen === undefined || !isShown ? undefined : await differenceFrom(desk, path, seen);
  const facts = { path, stamp: now?.stamp ?? null, changes: changes.map(factsOf), diff };
  const lines = [
    now === undefined
      ? `${path} does not exist any more.`
      : seenStamp === null
        ? `${path} exists already${now.directory ? ", and is a directory" : ""}.`
        : `${path} has changed since you saw it. Nothing was changed now.`,
    ...(changes.length === 0 ? [] : ["Latest changes of it:", ...changes.map(lineOf)]),
    ...(diff === undefined ? [] : ["What differs from what you read:", diff]),
  ];
  const next =
    now === undefined
      ? "Pass stamp null to make it anew, or leave it removed."
      : now.directory
        ? "List it again with `deep`, look at what changed, and pass the new stamp."
        : "Read it again, merge your change into what is there now, and write with the new stamp; `edit` does that for parts of a file.";
  return new Refusal("CONFLICT", bounded(lines.join("\n")), next, facts);
}

async function differenceFrom(desk: Desk, path: string, seen: string): Promise<string | undefined> {
  try {
    return diffOf(seen, new TextDecoder().decode(await (await desk.files()).read(path)));
  } catch {
    // It is gone again, or a directory now.
    return undefined;
  }
}
