// Mutants of lanes: an order that goes by a clock, and a token that moves.
import type { PathHold } from "../../../locks/path/path-hold.ts";
import { BoxLayout } from "../../../handoff/box/layout.ts";
import type { LeaseTaker } from "../../../handoff/consume/kept-leases.ts";
import type { ActorContext } from "../../explorer/scenario.ts";
import { laneScenarios, realLaneSteps, type LaneSteps } from "../../scenarios/handoff/lanes.ts";
import { directory } from "../../scenarios/handoff/handoff-world.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** A token for each group: made when it is missing, and moved away by the process that has it. */
function movingToken({ name, ports: { disk } }: ActorContext): LeaseTaker {
  const [token, mine] = [`${directory}/token`, `${directory}/token-of-${name}`];
  const isDone = async (change: Promise<void>): Promise<boolean> =>
    await change.then(
      () => true,
      () => false,
    );
  return {
    acquire: () => Promise.reject(new Error("a lane is not waited for")),
    tryAcquire: async () => {
      await isDone(disk.createFile(token, new Uint8Array(), { sync: false }));
      if (!(await isDone(disk.rename(token, mine)))) return undefined;
      const release = async (): Promise<void> => void (await isDone(disk.rename(mine, token)));
      return { release } as PathHold;
    },
  };
}

/** Tells of a key that was published before, and leaves the ticket to its publisher or a sweeper. */
const tellingOnly: LaneSteps["publish"] = async (box, publication) => {
  const { holder } = await box.ground.session();
  const ofThis = (by: string): string =>
    by === holder.id ? BoxLayout.prototype.staging.call(box.layout, by) : `${directory}/nowhere`;
  Object.defineProperty(box.layout, "staging", { value: ofThis, configurable: true });
  return await realLaneSteps.publish(box, publication);
};

function inScenario(steps: Partial<LaneSteps>, name: string): Mutant["scenario"] {
  return scenarioNamed(laneScenarios({ ...realLaneSteps, ...steps }), name);
}

export const handoffLaneMutants: readonly Mutant[] = [
  {
    name: "lane order by clock",
    about: "The clock of a machine is behind: what it publishes later comes first.",
    scenario: inScenario(
      { nextInLane: async ({ ground }) => ground.ports.clock.wallMs() },
      "handoff: the order of a lane, from two machines",
    ),
    breaks: /before one that was published earlier/,
  },
  {
    name: "lane entered after the answer",
    about: "The publisher died between its key and its place; the next ticket of a producer that was told comes first.",
    scenario: inScenario(
      { publish: tellingOnly },
      "handoff: a publish into a lane is repeated when the first one has its key",
    ),
    breaks: /has no place yet/,
  },
  {
    name: "moving group token",
    about: "A process that sees no token makes another one, while its holder has moved it away.",
    scenario: inScenario({ openLeases: movingToken }, "handoff: two workers in a lane"),
    breaks: /two workers are in one group/,
  },
];
