// Mutants of retention and of the ledger's upkeep: wrong orders of removal.
import { removeTree, unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { moveOnce } from "../../../src/durable/publish/publish.ts";
import { findRecord } from "../../../src/durable/publish/record-file.ts";
import type { Box } from "../../../src/handoff/box/box.ts";
import { findCommitted } from "../../../src/handoff/ledger/ledger.ts";
import { ticketKind } from "../../../src/handoff/model/manifest.ts";
import { findTicket } from "../../../src/handoff/operate/find.ts";
import { releaseKey } from "../../../src/handoff/operate/key-release.ts";
import { keyScenarios, realKeySteps, type KeySteps } from "../../scenarios/handoff/keys.ts";
import { ledgerScenarios, realLedgerSteps, type LedgerSteps } from "../../scenarios/handoff/ledger.ts";
import { operateScenarios, realOperateSteps } from "../../scenarios/handoff/operating.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Removes the payload before the ticket. */
async function payloadFirst({ disk, layout }: Box): Promise<void> {
  const parent = `${layout.directory}/archive`;
  for (const day of await disk.list(parent))
    for (const text of await disk.list(`${parent}/${day}`)) {
      await removeTree(disk, layout.payload(text.slice(0, 36)));
      if (await moveOnce(disk, `${parent}/${day}/${text}`, `${layout.trash}/${text}-retention`))
        await unlinkIfThere(disk, `${layout.trash}/${text}-retention`);
    }
}

/** Removes the entries, then puts the block in their place. */
const vacating: LedgerSteps = {
  ...realLedgerSteps,
  compact: async (box, entries) => {
    for (const { path } of entries) await unlinkIfThere(box.disk, path);
    await realLedgerSteps.compact(box, entries);
  },
};

/** Acknowledges an entry once it has its name, before the name is durable. */
const unsynced: LedgerSteps = {
  ...realLedgerSteps,
  commit: async (box, ...rest) => {
    Object.defineProperty(box, "sync", { value: async () => undefined, configurable: true });
    return await realLedgerSteps.commit(box, ...rest);
  },
};

/** Releases the key of a ticket that was made before the commit, by the clocks of two machines. */
const byClocks: KeySteps = {
  ...realKeySteps,
  expire: async (box, path) => {
    const committed = (await findCommitted(box, path))?.committed;
    const keyPath = box.layout.key(committed?.key ?? "");
    await unlinkIfThere(box.disk, path);
    const ticket = await findRecord(box.disk, ticketKind, keyPath);
    if (committed !== undefined && ticket !== undefined && ticket.manifest.createdAt <= new Date(committed.at))
      await unlinkIfThere(box.disk, keyPath);
  },
};

/** Checks for the ticket before it removes the entry. */
const lookingFirst: KeySteps = {
  ...realKeySteps,
  expire: async (box, path) => {
    const committed = (await findCommitted(box, path))?.committed;
    if (committed === undefined) return;
    const ticket = await findRecord(box.disk, ticketKind, box.layout.key(committed.key));
    const isGone = ticket !== undefined && (await findTicket(box, ticket.manifest.id)) === undefined;
    await unlinkIfThere(box.disk, path);
    if (isGone) await releaseKey(box, committed.key, ticket.manifest.id);
  },
};

/** Takes an empty trash as proof that no process is restoring a key. */
const trustingTrash: KeySteps = {
  ...realKeySteps,
  settle: async (box, staged, name) => {
    const ticket = await findRecord(box.disk, ticketKind, staged);
    const first = ticket && (await findRecord(box.disk, ticketKind, box.layout.key(ticket.manifest.key)));
    const isReleased = first === undefined && (await box.names(box.layout.trash)).length === 0;
    if (isReleased) await unlinkIfThere(box.disk, staged);
    else await realKeySteps.settle(box, staged, name);
  },
};

/** Claims without knowing what other callers of the same process are about to claim. */
function unaware(box: Box): ReturnType<typeof realOperateSteps.claimNext> {
  const get = (target: Box, key: string | symbol): unknown => {
    if (key === "inProgress") return new Set();
    const value: unknown = Reflect.get(target, key, target);
    return typeof value === "function" ? value.bind(target) : value;
  };
  return realOperateSteps.claimNext(new Proxy(box, { get }));
}

export const handoffOperateMutants: readonly Mutant[] = [
  {
    name: "claims of one process that know nothing of each other",
    about: "Both callers find the ticket at the target path, and both believe that they moved it.",
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
    name: "expiry that goes by clocks",
    about: "A ticket that seems younger than the commit under its key keeps the key forever.",
    scenario: scenarioNamed(
      keyScenarios(byClocks),
      "handoff: a ticket and the ledger entry of its key are removed by two processes",
    ),
    breaks: /has outlived/,
  },
  {
    name: "sweeper that trusts an empty trash",
    about: "A key is restored between the check of its name and that of the trash, and its ticket is discarded.",
    scenario: scenarioNamed(
      keyScenarios(trustingTrash),
      "handoff: a key is put back while the staged ticket that has it is settled",
    ),
    breaks: /is lost/,
  },
  {
    name: "expiry that looks for the ticket first",
    about:
      "The ticket is removed between the check and the removal of the entry; both processes leave the key to the other.",
    scenario: scenarioNamed(
      keyScenarios(lookingFirst),
      "handoff: a ticket and the ledger entry of its key are removed by two processes",
    ),
    breaks: /has outlived/,
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
  {
    name: "results in one block that are acknowledged before their names are synced",
    about: "The block is durable, but a power cut loses the names.",
    scenario: scenarioNamed(
      ledgerScenarios(unsynced),
      "handoff: results that are committed at once share a block, power cuts",
    ),
    breaks: /was acknowledged, and is not in the ledger/,
  },
];
