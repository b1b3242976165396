// The smallest state that shows whether a rolling chain counts right: how many appends each actor
// has made.
import { countOf, objectOf } from "../../../format/decoding.ts";
import type { RecordKind } from "../../../format/record.ts";
import type { RollingChainOptions } from "../../../durable/chain/rolling-chain.ts";

export type Counter = Readonly<Record<string, number>>;

const counterKind: RecordKind<Counter> = {
  kind: "counter",
  decode: (value) => Object.fromEntries(Object.entries(objectOf(value)).map(([name, count]) => [name, countOf(count)])),
};

/** Append number `count` of an actor; the state remembers all of them, as a count. */
export function countId(actor: string, count: number): string {
  return `${actor}:${count}`;
}

function isCounted(state: Counter, id: string): boolean {
  const [actor = "", count] = id.split(":");
  return (state[actor] ?? 0) >= Number(count);
}

export function addOne(state: Counter, actor: string): Counter {
  return { ...state, [actor]: (state[actor] ?? 0) + 1 };
}

/** What every rolling chain of counters has in common. */
export const counterOptions: Pick<RollingChainOptions<Counter>, "kind" | "initial" | "counts"> = {
  kind: counterKind,
  initial: {},
  counts: isCounted,
};
