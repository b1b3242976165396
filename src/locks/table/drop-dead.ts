// Dropping the holds of dead holders. A waiter judges the holders in its way; one append to the table
// drops the requests of all that are dead; then what they committed is completed, and their hold
// files are removed. No process enters because of a private conclusion that another one is dead.
import type { LockTable } from "./lock-table.ts";
import type { TableRequest } from "./request.ts";

/**
 * Judges the last of `blockers` at each poll, and all of them in a round or when the last one is
 * dead: the holders of one machine die and stop together. One append drops all that are dead.
 */
export async function dropDead(
  table: LockTable,
  blockers: readonly TableRequest[],
  { isRound }: { readonly isRound: boolean },
): Promise<void> {
  const judged = isRound ? blockers : blockers.slice(-1);
  const living = await table.judge(judged, { once: false });
  if (!isRound && living.length === 0) await table.judge(blockers, { once: false });
  await table.drop([]);
}
