// Stores whose record is created in a wrong way.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { findStore, StoreLayout, type StoreRecord } from "../../../src/durable/store/store-record.ts";
import { encodeRecord } from "../../../src/format/record.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { storeDirectory, storeScenarios } from "../../scenarios/store/making.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

const layout = new StoreLayout(storeDirectory);

/** Writes the record under its final name, instead of publishing it complete. */
async function openInPlace(ports: Ports): Promise<{ readonly id: string }> {
  const ground = await Ground.open(ports, layout.ground);
  const kind = { kind: "store", decode: (body: unknown) => body as StoreRecord };
  try {
    await ports.disk.createFile(layout.record, encodeRecord(kind, { id: ground.id }), { sync: true });
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
  }
  return (await findStore(ports.disk, storeDirectory)) ?? { id: "" };
}

/** Reports the store as open before its record exists. */
async function openWithoutRecord(ports: Ports): Promise<{ readonly id: string }> {
  return { id: (await Ground.open(ports, layout.ground)).id };
}

const whenKilled = "store: two processes make one on a ground that is there, and one is killed";
const whenPowerFails = "store: a process makes one, and the power fails";

export const storeMutants: readonly Mutant[] = [
  {
    name: "store whose record is written in place",
    about: "A killed process leaves half a record, and no process can open the store.",
    scenario: scenarioNamed(storeScenarios({ open: openInPlace }), whenKilled),
    breaks: /not a valid store record/,
  },
  {
    name: "store without a record",
    about: "A caller gets a store that the next process does not find.",
    scenario: scenarioNamed(storeScenarios({ open: openWithoutRecord }), whenPowerFails),
    breaks: /There is no store/,
  },
];
