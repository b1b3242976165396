// Scenarios of the store itself: several processes create one at the same time, and any of them may die while it does.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { StoreLayout } from "../../../src/durable/store/store-record.ts";
import { createStore, type Store } from "../../../src/store.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

export const storeDirectory = "/shop";
const directory = storeDirectory;
const layout = new StoreLayout(directory);
/** The files of one holder: only their maker knows the names. */
const ownFile = new RegExp(`^${layout.ground}/(holders|temp)/.`);
const permanent = [
  directory,
  layout.record,
  layout.ground,
  ...["ground.json", "holders", "temp"].map((name) => `${layout.ground}/${name}`),
];
const leaseMs = 1_000_000;

export interface StoreScenarioOptions {
  /** Opens the store: the real function, or a known-wrong variant. */
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
    // A process that creates a store checks no other holder.
    isUnseen: (_operation, path) => ownFile.test(path),
    isPermanent: (path) => permanent.includes(path),
    check: isOneStore,
    audit: async (ports, facts) => {
      const [id] = valuesOf<string>(facts, "opened");
      // Rejects if the store does not exist, is damaged, or has another id.
      await createStore(ports, directory, id === undefined ? { leaseMs } : { leaseMs, create: false, id });
    },
  };
  // The files that a maker leaves if it dies before it can write the record.
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
      about: "The same if either process has created the directories and the ground.",
      size: "large",
      killsMax: 1,
      mortal: ["ada"],
    },
  ];
}
