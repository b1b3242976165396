// The scenarios of the mechanisms.
import { exploreAll } from "./exploring.ts";
import { isOfEvents, isOfLocks } from "./scenario-names.ts";

exploreAll((name) => !isOfLocks(name) && !isOfEvents(name));
