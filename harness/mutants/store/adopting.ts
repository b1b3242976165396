// Adoptions whose steps are in the wrong order.
import { StoreLayout } from "../../../src/durable/store/store-record.ts";
import { createStore } from "../../../src/store.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { adoptingScenarios, partDirectory } from "../../scenarios/store/adopting.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

const layout = new StoreLayout(partDirectory);
const target = layout.part("events", "main");

/** Moves the files of the part one by one, the record first, instead of its directory as a whole. */
async function adoptByPieces(ports: Ports): Promise<void> {
  const { disk } = ports;
  await disk.mkdir(`${partDirectory}/events`);
  await disk.mkdir(target);
  for (const name of ["log.json", ".holdfast", "data"])
    await disk.rename(`${partDirectory}/${name}`, `${target}/${name}`);
  for (const directory of [target, `${partDirectory}/events`, partDirectory]) await disk.syncDirectory(directory);
  await (await createStore(ports, partDirectory)).close();
}

const name = "store: a lone log is adopted, and the power fails";

export const adoptingMutants: readonly Mutant[] = [
  {
    name: "store that adopts a part piece by piece",
    about: "An adopter that dies leaves a log without its segments, which the store takes for complete.",
    scenario: scenarioNamed(adoptingScenarios({ adopt: adoptByPieces }), name),
    breaks: /There is no store|is missing|is not in/,
  },
];
