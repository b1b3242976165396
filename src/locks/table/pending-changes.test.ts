import { expect, it } from "vitest";
import { nodeClock } from "../../ports/node/clock.ts";
import { PendingTableChanges } from "./pending-changes.ts";
import type { TableRequest, TableState } from "./request.ts";

const holder = "01kdz".padEnd(36, "0");

function requestOf(name: string, change = "c1"): TableRequest {
  return { id: `${holder}.${name}`, holder, claims: [], fence: 1, sinceMs: 1, change };
}

const [over, condemned, stands] = [requestOf("over"), requestOf("condemned"), requestOf("stands")];
const table: TableState = { requests: [over, condemned, stands], redos: [] };

function newPending(): PendingTableChanges {
  const append = async (): Promise<void> => undefined;
  return new PendingTableChanges({ clock: nodeClock, append, judgedState: ({ change }) => change });
}

it("an append omits requests that are over or condemned, and forgets both once it counts", () => {
  const pending = newPending();
  pending.noteOver(over.id);
  pending.condemn(condemned);
  const { state, dropped, forget } = pending.omitFrom(table);
  expect({ state, dropped }).toEqual({ state: { requests: [stands], redos: [] }, dropped: [condemned] });
  forget();
  expect([pending.isOver(over.id), pending.isToDrop(condemned), pending.hasCondemned]).toEqual([false, false, false]);
});

it("what becomes pending while an append is in progress is left to the next append", () => {
  const pending = newPending();
  pending.condemn(condemned);
  const { forget } = pending.omitFrom(table);
  const taken = requestOf("condemned", "c2");
  pending.condemn(taken);
  pending.noteUnwanted(stands.id);
  pending.noteOver(over.id);
  forget();
  expect(pending.omitFrom({ requests: [over, taken, stands], redos: [] })).toMatchObject({
    state: { requests: [] },
    dropped: [taken, stands],
  });
});
