// Mutants of lanes: an order by clocks, and a token that moves.
import type { PathHold } from "../../../src/locks/path/path-hold.ts";
import { BoxLayout } from "../../../src/handoff/box/layout.ts";
import type { LeaseTaker } from "../../../src/handoff/consume/kept-leases.ts";
import type { ActorContext } from "../../../src/testing/explorer/scenario.ts";
import { laneScenarios, realLaneSteps, type LaneSteps } from "../../scenarios/handoff/lanes.ts";
import { directory } from "../../scenarios/handoff/handoff-world.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/**
 * A token for each group. A process creates it if it is missing, and moves it away to work on the
 * group.
 */
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

/** Answers a repeated key as published, and leaves the ticket to its publisher or a sweeper. */
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
    about:
      "The publisher dies after it won its key and before its ticket has a position. A later ticket of a producer that was answered then comes first.",
    scenario: inScenario(
      { publish: tellingOnly },
      "handoff: a publish into a lane is repeated when the first one has its key",
    ),
    breaks: /has no place yet/,
  },
  {
    name: "moving group token",
    about: "A process that finds no token creates another one, although its holder has only moved it.",
    scenario: inScenario({ openLeases: movingToken }, "handoff: two workers in a lane"),
    breaks: /two workers are in one group/,
  },
];
