// Mutants of retention and of the upkeep of the ledger: the order in which things go.
import { removeTree, unlinkIfThere } from "../../../durable/publish/directory.ts";
import { moveOnce } from "../../../durable/publish/publish.ts";
import type { Box } from "../../../handoff/box/box.ts";
import { ledgerScenarios, realLedgerSteps, type LedgerSteps } from "../../scenarios/handoff/ledger.ts";
import { operateScenarios, realOperateSteps } from "../../scenarios/handoff/operating.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Removes the payload, and then takes the ticket away. */
async function payloadFirst({ disk, layout }: Box): Promise<void> {
  const parent = `${layout.directory}/archive`;
  for (const day of await disk.list(parent))
    for (const text of await disk.list(`${parent}/${day}`)) {
      await removeTree(disk, layout.payload(text.slice(0, 36)));
      if (await moveOnce(disk, `${parent}/${day}/${text}`, `${layout.trash}/${text}-retention`))
        await unlinkIfThere(disk, `${layout.trash}/${text}-retention`);
    }
}

/** Removes the entries, and puts the block in their place. */
const vacating: LedgerSteps = {
  compact: async (box, entries) => {
    for (const { path } of entries) await unlinkIfThere(box.disk, path);
    await realLedgerSteps.compact(box, entries);
  },
};

/** Claims without knowing what other callers of the same process are about to claim. */
function unaware(box: Box): ReturnType<typeof realOperateSteps.claimNext> {
  const get = (target: Box, key: string | symbol): unknown => {
    if (key === "inHand") return new Set();
    const value: unknown = Reflect.get(target, key, target);
    return typeof value === "function" ? value.bind(target) : value;
  };
  return realOperateSteps.claimNext(new Proxy(box, { get }));
}

export const handoffOperateMutants: readonly Mutant[] = [
  {
    name: "claims of one process that know nothing of each other",
    about: "Both find the ticket where each would have moved it, and both take it for their own.",
    scenario: scenarioNamed(
      operateScenarios({ ...realOperateSteps, claimNext: unaware }),
      "handoff: two claims of one process",
    ),
    breaks: /two processes have one claim/,
  },
  {
    name: "payload-first retention",
    about: "A replay brings back a ticket whose payload is gone.",
    scenario: scenarioNamed(
      operateScenarios({ ...realOperateSteps, collect: payloadFirst }),
      "handoff: retention against replay",
    ),
    breaks: /it is not there|there is ticket/,
  },
  {
    name: "compaction that vacates a name",
    about: "A worker finds the name of its key free, and commits a second time.",
    scenario: scenarioNamed(
      ledgerScenarios(vacating),
      "handoff: entries of the ledger become a block, and a worker has a ticket of one",
    ),
    breaks: /committed twice|is lost/,
  },
];
