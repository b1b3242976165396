// The scenarios of the event log and of those who follow it.
import { exploreAll } from "./exploring.ts";
import { isOfEvents } from "./scenario-names.ts";

exploreAll(isOfEvents);
