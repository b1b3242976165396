// Scenarios of batch publishing: keys share a file, and one sync serves many tickets.
import { minuteName } from "../../../src/handoff/box/layout.ts";
import type { Publication } from "../../../src/handoff/model/publication.ts";
import { actor, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { busyProducer, openToWork, orTold, producer, type Steps } from "./handoff-actors.ts";
import { handoffScenario } from "./handoff-audit.ts";
import { directory, large, publication } from "./handoff-world.ts";

/**
 * Claims a ticket, then removes the directory of the minute and creates it again, as processes with other clocks do.
 */
function remaker({ claimNext }: Steps): Actor {
  return actor({
    prepare: openToWork,
    run: (context, box) =>
      orTold(context, async () => {
        const { clock } = context.ports;
        const minute = `${directory}/incoming/5/${minuteName(clock.wallMs())}`;
        if ((await claimNext(box)) === undefined) return;
        // Syncs the directory, so that the first ticket is not lost with it.
        await box.disk.syncDirectory(minute);
        await box.disk.rmdir(minute).catch(() => undefined);
        await box.disk.mkdir(minute).catch(() => undefined);
      }),
  });
}

const twoFiles: Publication["bodies"] = [
  ["a.txt", large],
  ["b.txt", "b"],
];

export function publishingScenarios(steps: Steps): Scenario[] {
  const keyed = (key: string): Publication => publication(key, { key });
  return [
    handoffScenario({
      name: "handoff: tickets with keys that are published at once, power cuts",
      size: "large",
      about: "Each ticket is present once it is acknowledged, and no key names a ticket that does not exist.",
      profile: "journal",
      powerCuts: true,
      actors: { ada: busyProducer(steps, keyed("order 0"), keyed("order 1"), keyed("order 2")) },
    }),
    handoffScenario({
      name: "handoff: tickets that are published at once, two of them with one key, one publisher is killed",
      about: "The second of the two gets the id of the first. A key that was won has its ticket.",
      actors: { ada: busyProducer(steps, keyed("order 1"), keyed("order 2"), keyed("order 2")) },
      killsMax: 1,
    }),
    handoffScenario({
      name: "handoff: a publisher of two files, power cuts",
      about: "The files are synced concurrently, and both before the ticket is acknowledged.",
      profile: "journal",
      powerCuts: true,
      actors: { ada: producer(steps, publication(large, { bodies: twoFiles })) },
    }),
    handoffScenario({
      name: "handoff: a publisher of two tickets, and the directory of the minute is made again, power cuts",
      about: "The name of the new directory is durable before the second ticket is acknowledged.",
      profile: "journal",
      powerCuts: true,
      isRemoved: (path) => path.startsWith(`${directory}/incoming/5/`),
      actors: { ada: producer(steps, publication("1"), publication("2")), bob: remaker(steps) },
    }),
  ];
}
