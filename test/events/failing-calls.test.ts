// One fault of each kind at each disk call of an append: an error once, one for good, a lost reply.
// The other faults are in failing-calls.deep.ts.
import { failEachCall, failTheRelease } from "./failing-calls.ts";

const everyday = new Map([
  ["EIO", false],
  ["ENOSPC", true],
  ["done, but the reply is lost", false],
]);

failEachCall(({ label, lasting }) => everyday.get(label) === lasting);
failTheRelease();
