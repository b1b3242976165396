// The scenarios of the mechanisms.
import { exploreAll } from "./exploring.ts";
import { isOfLocks } from "./scenario-names.ts";

exploreAll((name) => !isOfLocks(name));
