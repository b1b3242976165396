// The scenarios of redo and of semaphore files.
import { exploreAll } from "./exploring.ts";
import { isOfRedo } from "./scenario-names.ts";

exploreAll(isOfRedo);
