// Scenarios of the store itself: several processes make one at the same time, and any of them may die over it.
import { StoreLayout } from "../../../durable/store/store-record.ts";
import { createStore, type Store } from "../../../store.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";

const directory = "/shop";
const layout = new StoreLayout(directory);
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
    isPermanent: (path) => path === layout.record,
    check: isOneStore,
    audit: async (ports, facts) => {
      const [id] = valuesOf<string>(facts, "opened");
      const found = await createStore(ports, directory, { leaseMs });
      mustHold(id === undefined || found.id === id, "a store that was opened has another id now");
    },
  };
  return [
    {
      ...making,
      name: "store: two processes make one, and one is killed",
      about: "Whatever step the maker dies at, the other process and all later ones open one store with one id.",
      killsMax: 1,
      mortal: ["ada"],
    },
    {
      ...making,
      name: "store: two processes make one, and the power fails",
      about: "A store that was opened has the same id after a power cut.",
      powerCuts: true,
    },
  ];
}
