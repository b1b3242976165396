// The smallest state that shows whether a rolling chain counts correctly: the number of appends of each actor.
import { countOf, objectOf } from "../../../src/format/decoding.ts";
import type { RecordKind } from "../../../src/format/record.ts";
import type { DeltaKind } from "../../../src/durable/chain/state-delta.ts";
import type { RollingChainOptions } from "../../../src/durable/chain/rolling-chain.ts";

export type Counter = Readonly<Record<string, number>>;

const counterKind: RecordKind<Counter> = {
  kind: "counter",
  decode: (value) => Object.fromEntries(Object.entries(objectOf(value)).map(([name, count]) => [name, countOf(count)])),
};

/** The id of an actor's append number `count`. The state remembers only the highest count. */
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

/** A slot holds only the changed counts. */
export const counterDeltas: DeltaKind<Counter> = {
  isLarge: () => true,
  between: (before, made) => Object.fromEntries(Object.entries(made).filter(([name, count]) => before[name] !== count)),
  apply: (before, delta) => ({ ...before, ...counterKind.decode(delta) }),
};

/** Options that all rolling chains of counters share. */
export const counterOptions: Pick<RollingChainOptions<Counter>, "kind" | "initial" | "counts"> = {
  kind: counterKind,
  initial: {},
  counts: isCounted,
};
