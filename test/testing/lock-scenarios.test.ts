// The scenarios of locks.
import { exploreAll } from "./exploring.ts";
import { isOfLocks } from "./scenario-names.ts";

exploreAll(isOfLocks);
