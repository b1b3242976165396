// What the workers of trials do: claims and all the ways in which they end.
import type { Delivery } from "../../../src/handoff/model/delivery.ts";
import type { BoxHandoff } from "../../../src/handoff/handoff.ts";
import { other, type Trial } from "./trials.ts";

const parkMs = 1_000;

async function publishOne(publisher: BoxHandoff): Promise<void> {
  await publisher.publish({ "a.txt": "an order" }, { key: "order" });
}

/** What is not settled is given back. */
async function withDelivery(
  taking: Promise<Delivery | undefined>,
  settle: (delivery: Delivery) => Promise<void>,
): Promise<void> {
  await using delivery = await taking;
  if (delivery !== undefined) await settle(delivery);
}

async function publishLane(publisher: BoxHandoff): Promise<void> {
  for (const key of ["first", "second"]) await publisher.publish({ "a.txt": key }, { key, group: "g" });
}

export const trials: readonly Trial[] = [
  {
    what: "claims and acknowledges",
    prepare: publishOne,
    keys: ["order"],
    run: (worker) => withDelivery(worker.take(), (delivery) => delivery.ack("done")),
  },
  {
    what: "claims and commits outputs and a ticket for another box",
    prepare: publishOne,
    keys: ["order"],
    run: (worker) =>
      withDelivery(worker.take(), async (delivery) => {
        await delivery.output("result.txt", "a result");
        await delivery.send({ directory: other }, { "b.txt": "an invoice" });
        await delivery.ack("done");
      }),
  },
  {
    what: "claims and retries",
    prepare: publishOne,
    keys: ["order"],
    run: (worker) => withDelivery(worker.take(), (delivery) => delivery.retry({ delayMs: 100, reason: "not now" })),
  },
  {
    what: "claims and postpones",
    prepare: publishOne,
    keys: ["order"],
    run: (worker) => withDelivery(worker.take(), (delivery) => delivery.postpone({ delayMs: 100 })),
  },
  {
    what: "parks its claim and goes on with it",
    prepare: publishOne,
    keys: ["order"],
    run: async (worker) => {
      const parked = await worker.takeParked(parkMs);
      if (parked !== undefined)
        await withDelivery(worker.resumeParked(parked.claim), (delivery) => delivery.ack("done"));
    },
  },
  {
    what: "works in a lane",
    prepare: publishLane,
    keys: ["first", "second"],
    run: (worker) => withDelivery(worker.take(), (delivery) => delivery.ack("done")),
  },
  {
    what: "fails a ticket for good",
    prepare: publishOne,
    keys: ["order"],
    mayFail: true,
    run: (worker) => withDelivery(worker.take(), (delivery) => delivery.fail("not an order")),
  },
];
