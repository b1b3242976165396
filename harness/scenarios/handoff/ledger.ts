// Scenarios of the ledger: its upkeep beside workers. A committed result can be found at any moment.
import { parentOf } from "../../../src/durable/publish/directory.ts";
import { encodeRecord } from "../../../src/format/record.ts";
import type { Box } from "../../../src/handoff/box/box.ts";
import { compactEntries } from "../../../src/handoff/ledger/compaction.ts";
import { commit } from "../../../src/handoff/ledger/group-commit.ts";
import { committedKind, findCommitted, type Committed } from "../../../src/handoff/ledger/ledger.ts";
import type { FoundEntry } from "../../../src/handoff/ledger/upkeep.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { openToWork, orTold, realSteps, worker } from "./handoff-actors.ts";
import { handoffScenario } from "./handoff-audit.ts";
import { openBox, plant, publication } from "./handoff-world.ts";

const key = "order 1";
const others = 2;

export interface LedgerSteps {
  readonly commit: typeof commit;
  readonly compact: (box: Box, entries: readonly FoundEntry[]) => Promise<unknown>;
}

export const realLedgerSteps: LedgerSteps = {
  commit,
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

/** Plants old entries, and a second ticket for the key of one of them. */
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

/** Commits all at once: the first result alone, the others in one block. */
function committer({ commit: commitOne }: LedgerSteps): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openToWork(context);
      for (const { path } of entriesOf(box)) await box.ensure(parentOf(path));
      return box;
    },
    run: async ({ note }, box) => {
      const session = await box.ground.session();
      const commitEach = async ({ path, committed }: FoundEntry): Promise<void> => {
        await commitOne(box, session, path, committed);
        note("kept", committed.key);
      };
      await Promise.all(entriesOf(box).map(commitEach));
    },
  });
}

async function mustBeKept(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const box = await openBox({ name: "auditor", ports });
  for (const kept of valuesOf<string>(facts, "kept")) {
    const entry = await findCommitted(box, box.layout.ledger(kept, 0));
    mustHold(entry?.committed.key === kept, `${kept} was acknowledged, and is not in the ledger`);
  }
  await box.ground.close();
}

function neverAgain(facts: readonly Fact[]): void {
  mustHold(!facts.some(({ what }) => what === "committed"), "a key was committed twice");
}

export function ledgerScenarios(steps: LedgerSteps = realLedgerSteps): Scenario[] {
  return [
    handoffScenario({
      name: "handoff: results that are committed at once share a block, power cuts",
      about: "Each result is present once it is acknowledged.",
      profile: "journal",
      powerCuts: true,
      actors: { ada: committer(steps) },
      audit: mustBeKept,
    }),
    handoffScenario({
      name: "handoff: entries of the ledger become a block, and a worker has a ticket of one",
      about: "The worker finds that its key is done, whatever step the compactor has reached.",
      setup: plantEntries,
      actors: { com: compactor(steps), ada: worker(realSteps) },
      killsMax: 1,
      mortal: ["com"],
      isRemoved: (path) => path.startsWith("/box/ledger/"),
      check: neverAgain,
    }),
  ];
}
