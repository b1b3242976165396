// Every fault at every disk call of an append: each errno once, some for good, and lost replies.
// One of each kind runs every day, in failing-calls.test.ts.
import { failEachCall } from "./failing-calls.ts";

failEachCall(() => true);
