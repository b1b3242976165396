// Drops the requests of dead holders. A waiter judges the holders that block it. One append to the table drops the
// requests of all that are dead; then committed changes of theirs are completed, and their hold files removed. No
// process enters because it alone concluded that another is dead.
import type { RequestTable } from "./request-table.ts";
import type { TableRequest } from "./request.ts";

/**
 * Judges the last of `blockers` at each poll. Judges all of them once per round, and if the last one is dead, because
 * the holders of one machine often die together. One append drops all that are dead.
 */
export async function dropDead(
  table: RequestTable,
  blockers: readonly TableRequest[],
  { isRound }: { readonly isRound: boolean },
): Promise<void> {
  const judged = isRound ? blockers : blockers.slice(-1);
  const living = await table.judge(judged, { once: false });
  if (!isRound && living.length === 0) await table.judge(blockers, { once: false });
  await table.drop([]);
}
