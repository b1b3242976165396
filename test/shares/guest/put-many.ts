// A process in a guest that puts to one key until enough of its puts were acknowledged.
import { isHoldfastError } from "../../../src/errors.ts";
import { openObjects } from "../../../src/objects/index.ts";
import { report } from "../../../harness/processes/child-side.ts";
import { bucketName, hotKey, shorten, type PutOrders, type PutReport } from "./object-puts.ts";

const { directory, name, puts } = JSON.parse(process.argv[2] ?? "") as PutOrders;
const store = await openObjects(directory);
const bucket = await store.bucket(bucketName);
let acknowledged = 0;
for (let count = 1; acknowledged < puts; count++) {
  const text = `${name} ${count} ${"x".repeat(1000)}`;
  try {
    const { versionId } = await bucket.put(hotKey, text);
    acknowledged++;
    report({ kind: "acknowledged", versionId, text: shorten(text) } satisfies PutReport);
  } catch (error) {
    // The server was away, or this machine slept: both are told honestly. Another error ends it.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN", "LOCK_LOST", "IO_ERROR")) throw error;
    report({ kind: "unknown", text: shorten(text) } satisfies PutReport);
  }
}
await store.close();
process.exit(0);
