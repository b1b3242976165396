// Hints of new tickets in a box: changes in the directories where they are most likely to arrive.
import type { Box } from "../box/box.ts";
import { minuteName } from "../box/layout.ts";
import type { ArrivalHints } from "../deliver/arrivals.ts";
import { priorityDefault, priorityMax } from "../model/manifest.ts";

/** A network mount does not report changes of other machines. */
const pollMs = {
  local: { first: 20, max: 250 },
  network: { first: 100, max: 1_000 },
  unknown: { first: 100, max: 1_000 },
};

export function arrivalHints(box: Box): ArrivalHints {
  const { watch, disk } = box.ground.ports;
  const { kind } = disk.volume;
  return {
    pollMs: pollMs[kind],
    watch: async (wake) => {
      if (kind !== "local") return () => undefined;
      const minute = minuteName(await box.nowMs());
      const priorities = [0, priorityDefault, priorityMax].map((priority) => box.layout.incoming(priority));
      const paths = [...priorities, ...priorities.map((directory) => `${directory}/${minute}`)];
      const stops = paths.map((path) => watch.start(path, wake));
      return () => stops.forEach((stop) => stop());
    },
  };
}
