// The calls of operators: replay, discard, collect.
import type { Cancel } from "../../common.ts";
import { checkOptions } from "../../format/known-options.ts";
import type { Collected, DiscardOptions, HandoffOptions, ReplayOptions } from "../../handoff/model/handoff.ts";
import { keyOf } from "../connection/text.ts";
import { listIds } from "./list.ts";
import type { PgBox } from "./pg-box.ts";

type Ended = "archive" | "error";

const letters: Readonly<Record<Ended, string>> = { archive: "a", error: "e" };

/**
 * Replays tickets, and returns how many. Discard and replay change a ticket by one statement each,
 * so only one of them succeeds.
 */
export async function replay(box: PgBox, options: ReplayOptions): Promise<number> {
  checkOptions("replay", options, { from: true, id: true, resetAttempts: true });
  const { from, id, resetAttempts = from === "error" } = options;
  mustBeEnded("replay", from);
  let replayed = 0;
  for await (const ids of idsOf(box, from, id)) {
    const [row] = await box.database.query<{ count: number }>("select hf_replay_1($1, $2, $3, $4) as count", [
      ...[box.p, letters[from], ids, resetAttempts],
    ]);
    replayed += row?.count ?? 0;
  }
  if (replayed > 0) box.wake();
  return replayed;
}

/** Discards tickets, and returns how many this call removed. */
export async function discard(box: PgBox, options: DiscardOptions): Promise<number> {
  checkOptions("discard", options, { from: true, id: true });
  const { from, id } = options;
  mustBeEnded("discard", from);
  return (await remove(box, from, idsOf(box, from, id))).tickets;
}

/** Collects the box. Any number of processes may run it at once. */
export async function collect(
  box: PgBox,
  { archiveMs = Infinity, errorMs = Infinity, ledgerMs = Infinity }: NonNullable<HandoffOptions["retention"]>,
  options: Cancel,
): Promise<Collected> {
  checkOptions("collect", options, { signal: true });
  const { database, ground, p } = box;
  let [tickets, bytes] = [0, 0];
  for (const [state, keptMs] of [["archive", archiveMs] as const, ["error", errorMs] as const]) {
    if (keptMs === Infinity) continue;
    const removed = await remove(box, state, listIds(box, state, keptMs), options);
    tickets += removed.tickets;
    bytes += removed.bytes;
  }
  for (let expired = 1; expired > 0 && ledgerMs < Infinity;) {
    options.signal?.throwIfAborted();
    const [row] = await database.query<{ count: number }>("select hf_expire_1($1, $2) as count", [p, ledgerMs]);
    expired = row?.count ?? 0;
  }
  await ground.sweep();
  await database.query("select hf_reap_1($1, $2)", [p, ground.part]);
  return { tickets, bytes };
}

async function remove(
  { database, p }: PgBox,
  from: Ended,
  pages: AsyncIterable<readonly string[]>,
  { signal }: Cancel = {},
): Promise<Collected> {
  let [tickets, bytes] = [0, 0];
  for await (const ids of pages) {
    signal?.throwIfAborted();
    const text = "select tickets, bytes from hf_discard_1($1, $2, $3)";
    const [row] = await database.query<{ tickets: number; bytes: number }>(text, [p, letters[from], ids]);
    tickets += row?.tickets ?? 0;
    bytes += row?.bytes ?? 0;
  }
  return { tickets, bytes };
}

async function* idsOf(box: PgBox, from: Ended, id: string | undefined): AsyncGenerator<readonly string[]> {
  if (id === undefined) yield* listIds(box, from);
  else yield [keyOf(id)];
}

function mustBeEnded(call: string, from: Ended): void {
  if (from !== "error" && from !== "archive")
    throw new TypeError(`${call}: from must be "error" or "archive", not ${String(from)}.`);
}
