// The methods of a hand-off and of a delivery that are traced operations, in every engine.
import { withCarrier } from "../../telemetry/carrier.ts";
import type { TracedMethods } from "../../telemetry/trace.ts";
import type { Handoff } from "../model/handoff.ts";
import type { OpenDelivery } from "./open-delivery.ts";

export const tracedHandoffMethods: TracedMethods<Handoff> = {
  part: "handoff",
  location: ({ directory }) => directory,
  methods: {
    publish: {
      about: ([files, options]) => ({ count: Object.keys(files).length, key: options?.key }),
      carry: ([files, options, ...rest], carrier) => {
        return [files, { ...options, meta: withCarrier(options?.meta, carrier) }, ...rest];
      },
    },
    // Each publish and each handler is an operation.
    publishMany: "untraced",
    consume: "untraced",
    keepAdopting: "untraced",
    keepExporting: "untraced",
    take: {},
    takeParked: {},
    resumeParked: { about: ([claim]) => ({ id: claim }) },
    deliveries: { iterates: true },
    adopt: { about: ([directory]) => ({ path: directory }) },
    export: { about: ([directory]) => ({ path: directory }) },
    find: { about: ([id]) => ({ id }) },
    findByKey: { about: ([key]) => ({ key }) },
    list: { iterates: true },
    waitFor: { about: ([id]) => ({ id }) },
    content: { about: ([id, name]) => ({ id, path: name }), iterates: true },
    stats: {},
    replay: { about: ([options]) => ({ id: options.id }) },
    discard: { about: ([options]) => ({ id: options.id }) },
    pause: {},
    resume: {},
    collect: {},
    verify: {},
    close: {},
  },
};

/** What a handler or a caller of `take` does with its delivery. */
export const tracedDeliveryMethods: TracedMethods<
  Pick<OpenDelivery, "id" | "attempt" | "directory" | "ack" | "retry" | "fail" | "postpone">
> = {
  part: "handoff",
  location: ({ directory }) => directory,
  methods: {
    ack: { about: (_given, { id, attempt }) => ({ id, attempt }) },
    retry: { about: (_given, { id, attempt }) => ({ id, attempt }) },
    fail: { about: (_given, { id, attempt }) => ({ id, attempt }) },
    postpone: { about: (_given, { id, attempt }) => ({ id, attempt }) },
  },
};
