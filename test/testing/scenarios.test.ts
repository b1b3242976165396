// The scenarios of the mechanisms.
import { exploreAll } from "./exploring.ts";
import { isOfEvents, isOfLocks, isOfRedo } from "./scenario-names.ts";

exploreAll((name) => !isOfLocks(name) && !isOfRedo(name) && !isOfEvents(name));
