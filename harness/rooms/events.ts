// Scenarios and mutants of src/events. A new file of either is one line here.
import { eventConsumerMutants } from "../mutants/events/consumers.ts";
import { eventMutants } from "../mutants/events/events.ts";
import { eventVersionMutants } from "../mutants/events/versions.ts";
import { eventConsumerScenarios } from "../scenarios/events/consumers.ts";
import { eventScenarios } from "../scenarios/events/events.ts";
import { unsyncedEventScenarios } from "../scenarios/events/unsynced-events.ts";
import { eventVersionScenarios } from "../scenarios/events/versions.ts";
import type { ExploredRoom } from "./room.ts";

export const eventsRoom: ExploredRoom = {
  name: "events",
  scenarios: [eventScenarios, unsyncedEventScenarios, eventConsumerScenarios, eventVersionScenarios],
  mutants: [eventMutants, eventConsumerMutants, eventVersionMutants],
};
