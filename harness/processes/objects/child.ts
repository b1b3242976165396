// One process that works on one key after the other as chance decides, and reports every call and every answer.
import { once } from "node:events";
import { openObjects } from "../../../src/objects/index.ts";
import { Chance } from "../chance.ts";
import { finishSignal, report } from "../child-side.ts";
import { KeyWorker, type KeyOperation } from "./key-work.ts";

export interface KeyChildOrders {
  readonly directory: string;
  readonly bucket: string;
  readonly keys: readonly string[];
  readonly name: string;
  readonly seed: number;
  /** The number of operations on each key. */
  readonly operations: number;
  readonly inlineMax: number;
}

/** A call, reported before it is made; the same call with its answer; or the end of the work on all keys. */
export type KeyChildReport =
  | { readonly kind: "called" | "returned"; readonly key: string; readonly operation: KeyOperation }
  | { readonly kind: "done" };

const { directory, bucket, keys, name, seed, operations, inlineMax } = JSON.parse(
  process.argv[2] ?? "",
) as KeyChildOrders;
const finish = finishSignal();
const store = await openObjects(directory, { inlineMax });
const opened = await store.bucket(bucket);
const tell = (what: KeyChildReport): void => report(what);
const chance = new Chance(seed ^ process.pid);
for (const key of keys) {
  const worker = new KeyWorker({
    bucket: opened,
    key,
    // Each start has another name: the process no longer knows what the previous one has put.
    name: `${name}.${process.pid}`,
    chance,
    // One clock for all processes of a machine.
    now: () => Number(process.hrtime.bigint()),
    onCall: (operation) => tell({ kind: "called", key, operation }),
    onReturn: (operation) => tell({ kind: "returned", key, operation }),
  });
  for (let count = 0; count < operations && !finish.aborted; count++) await worker.doNext();
}
tell({ kind: "done" });
// The parent decides when to end: an exit on its own would count as a failure.
if (!finish.aborted) await once(finish, "abort");
await store.close();
process.exit(0);
