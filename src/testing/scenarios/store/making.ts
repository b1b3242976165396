// Scenarios of the store itself: several processes make one at the same time, and any of them may die over it.
import { Ground } from "../../../durable/liveness/ground.ts";
import { StoreLayout } from "../../../durable/store/store-record.ts";
import { createStore, type Store } from "../../../store.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";

export const storeDirectory = "/shop";
const directory = storeDirectory;
const layout = new StoreLayout(directory);
/** Of one holder: its names are known to their maker alone. */
const ownFile = new RegExp(`^${layout.ground}/(holders|temp)/.`);
const permanent = [
  directory,
  layout.record,
  layout.ground,
  ...["ground.json", "holders", "temp"].map((name) => `${layout.ground}/${name}`),
];
const leaseMs = 1_000_000;

export interface StoreScenarioOptions {
  /** What the scenarios run on: the real one, or a known-wrong variant. */
  readonly open?: (ports: Ports) => Promise<Pick<Store, "id">>;
}

function maker({ open = (ports) => createStore(ports, directory, { leaseMs }) }: StoreScenarioOptions): Actor {
  return actor({ run: async ({ ports, note }) => note("opened", (await open(ports)).id) });
}

function isOneStore(facts: readonly Fact[]): void {
  mustHold(new Set(valuesOf(facts, "opened")).size <= 1, "two processes opened two stores in one directory");
}

export function storeScenarios(options: StoreScenarioOptions = {}): Scenario[] {
  const making: Omit<Scenario, "name" | "about"> = {
    actors: { ada: maker(options), bob: maker(options) },
    // A process that makes a store looks for no other holder.
    isUnseen: (_operation, path) => ownFile.test(path),
    isPermanent: (path) => permanent.includes(path),
    check: isOneStore,
    audit: async (ports, facts) => {
      const [id] = valuesOf<string>(facts, "opened");
      // Rejects when it is not there, is damaged, or has another id.
      await createStore(ports, directory, id === undefined ? { leaseMs } : { leaseMs, create: false, id });
    },
  };
  // What a maker leaves that died before it could make the record.
  const setup = async (ports: Ports): Promise<void> => await (await Ground.open(ports, layout.ground)).close();
  return [
    {
      ...making,
      name: "store: two processes make one on a ground that is there, and one is killed",
      about: "Whatever step a maker dies at, the other process and all later ones open one store with one id.",
      setup,
      killsMax: 1,
      mortal: ["ada"],
    },
    {
      ...making,
      name: "store: a process makes one, and the power fails",
      about: "A store that was opened has the same id after a power cut.",
      actors: { ada: maker(options) },
      powerCuts: true,
    },
    {
      ...making,
      name: "store: two processes make one from nothing, and one is killed",
      about: "The same, with directories and ground made by either of them.",
      size: "large",
      killsMax: 1,
      mortal: ["ada"],
    },
  ];
}
