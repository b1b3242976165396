// The methods of an event store that are traced operations, in every engine.
import { withCarrier } from "../telemetry/carrier.ts";
import type { TracedMethods } from "../telemetry/trace.ts";
import { accessOf } from "./log/log-access.ts";
import type { EventStore } from "./model/event-store.ts";
import type { NewEvent } from "../common.ts";
import { isList } from "./model/query.ts";

export const tracedEventMethods: TracedMethods<EventStore> = {
  part: "events",
  location: (store) => accessOf(store).directory,
  methods: {
    append: {
      about: ([events]) => ({ count: Array.isArray(events) ? events.length : 1 }),
      carry: ([events, ...rest], carrier) => {
        const add = (event: NewEvent): NewEvent => {
          const metadata = withCarrier(event.metadata, carrier);
          return metadata === event.metadata ? event : { ...event, metadata };
        };
        return [isList(events) ? events.map(add) : add(events), ...rest];
      },
    },
    read: { iterates: true },
    last: {},
    head: {},
    bytes: {},
    subscribe: { iterates: true },
    // Its handler is an operation.
    consume: "untraced",
    consumers: {},
    addTags: { about: ([positions]) => ({ count: positions.length }) },
    verify: {},
    close: {},
  },
};
