// Scenarios of the ledger: its upkeep beside workers. What was committed is found at any moment.
import { encodeRecord } from "../../../format/record.ts";
import type { Box } from "../../../handoff/box/box.ts";
import { compactEntries } from "../../../handoff/ledger/compaction.ts";
import { committedKind, type Committed } from "../../../handoff/ledger/ledger.ts";
import type { FoundEntry } from "../../../handoff/ledger/upkeep.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";
import { openToWork, orTold, realSteps, worker } from "./handoff-actors.ts";
import { handoffScenario } from "./handoff-audit.ts";
import { openBox, plant, publication } from "./handoff-world.ts";

const key = "order 1";
const others = 2;

export interface LedgerSteps {
  readonly compact: (box: Box, entries: readonly FoundEntry[]) => Promise<unknown>;
}

export const realLedgerSteps: LedgerSteps = {
  compact: async (box, entries) => await compactEntries(box, await box.ground.session(), entries),
};

function entriesOf(box: Box): FoundEntry[] {
  return Array.from({ length: 1 + others }, (_, index) => {
    const committed: Committed = {
      key: index === 0 ? key : `other ${index}`,
      replays: 0,
      id: "0".repeat(36),
      claims: 1,
      holder: "0".repeat(36),
      at: new Date(0).toISOString(),
      result: "before",
      outputs: [],
      sent: [],
    };
    return { path: box.layout.ledger(committed.key, 0), committed, form: "record" };
  });
}

/** Entries of long ago, and a second ticket for the key of one of them. */
async function plantEntries(ports: Ports): Promise<void> {
  const box = await openBox({ name: "setup", ports });
  for (const { path, committed } of entriesOf(box)) {
    await box.ensure(path.slice(0, path.lastIndexOf("/")));
    await box.disk.createFile(path, encodeRecord(committedKind, committed), { sync: true });
  }
  await plant(ports, [publication("an order", { key })]);
  await box.ground.close();
}

function compactor({ compact }: LedgerSteps): Actor {
  return actor({
    prepare: openToWork,
    run: async (context, box) => await orTold(context, async () => void (await compact(box, entriesOf(box)))),
  });
}

function neverAgain(facts: readonly Fact[]): void {
  mustHold(!facts.some(({ what }) => what === "committed"), "a key was committed twice");
}

export function ledgerScenarios(steps: LedgerSteps = realLedgerSteps): Scenario[] {
  return [
    handoffScenario({
      name: "handoff: entries of the ledger become a block, and a worker has a ticket of one",
      about: "The worker finds that its key is done, whatever the compactor has come to.",
      setup: plantEntries,
      actors: { com: compactor(steps), ada: worker(realSteps) },
      killsMax: 1,
      mortal: ["com"],
      isRemoved: (path) => path.startsWith("/box/ledger/"),
      check: neverAgain,
    }),
  ];
}
