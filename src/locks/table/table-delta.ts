// The difference that one append makes to a lock table with many requests, so that a slot need not hold the whole
// table.
import type { DeltaKind } from "../../durable/chain/state-delta.ts";
import { listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { Volume } from "../../ports/disk.ts";
import { redoOf } from "../redo/record.ts";
import { requestOf, type TableState } from "./request.ts";

/**
 * A table with more entries than this is written in deltas. A share reads a table of some kilobytes in one round
 * trip, but needs one for each delta.
 */
const entriesMax: Readonly<Record<Volume["kind"], number>> = { local: 16, network: 256, unknown: 256 };

interface Named {
  readonly id: string;
}

/** Applied to a list: removes `drop`, replaces entries with the same id, and appends the rest. */
interface ListDelta<E extends Named> {
  readonly drop: readonly string[];
  readonly put: readonly E[];
}

export function tableDeltas(volume: Volume["kind"]): DeltaKind<TableState> {
  return {
    isLarge: ({ requests, redos }) => requests.length + redos.length > entriesMax[volume],
    between: (before, made) => ({
      requests: difference(before.requests, made.requests),
      redos: difference(before.redos, made.redos),
    }),
    apply: (before, delta) => {
      const { requests, redos } = objectOf(delta);
      return {
        requests: changed(before.requests, requests, requestOf),
        redos: changed(before.redos, redos, redoOf),
      };
    },
  };
}

/** Throws if a request or redo that `before` does not have could not be read back from the disk. */
export function checkTable(made: TableState, before: TableState): void {
  for (const request of difference(before.requests, made.requests).put) requestOf(JSON.parse(JSON.stringify(request)));
  for (const redo of difference(before.redos, made.redos).put) redoOf(JSON.parse(JSON.stringify(redo)));
}

/** Compares two lists in which unchanged entries are the same objects, in the same order. */
function difference<E extends Named>(before: readonly E[], made: readonly E[]): ListDelta<E> {
  const drop: string[] = [];
  const put: E[] = [];
  let at = 0;
  for (const entry of before) {
    const now = made[at];
    // Usually true, and then nothing of the entry is compared.
    if (now === entry) at++;
    else if (now?.id === entry.id) {
      put.push(now);
      at++;
    } else drop.push(entry.id);
  }
  return { drop, put: [...put, ...made.slice(at)] };
}

function changed<E extends Named>(before: readonly E[], delta: unknown, decode: (value: unknown) => E): readonly E[] {
  const { drop, put } = objectOf(delta);
  const dropped = new Set(listOf(drop, textOf));
  const made = new Map(listOf(put, decode).map((entry) => [entry.id, entry]));
  if (dropped.size === 0 && made.size === 0) return before;
  const kept: E[] = [];
  for (const entry of before) {
    if (dropped.has(entry.id)) continue;
    kept.push(made.get(entry.id) ?? entry);
    made.delete(entry.id);
  }
  return [...kept, ...made.values()];
}
