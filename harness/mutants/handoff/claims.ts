// Mutants of claiming, committing and giving back: each lets two processes have one ticket, or
// loses it.
import { parentOf, removeTree, unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { moveOnce } from "../../../src/durable/publish/publish.ts";
import { findRecord, getRecord } from "../../../src/durable/publish/record-file.ts";
import { encodeRecord } from "../../../src/format/record.ts";
import { randomName } from "../../../src/format/id.ts";
import type { Box } from "../../../src/handoff/box/box.ts";
import type { ClaimedTicket } from "../../../src/handoff/consume/claim.ts";
import { committedKind, findCommitted, type LedgerEntry } from "../../../src/handoff/ledger/ledger.ts";
import { ticketKind } from "../../../src/handoff/model/manifest.ts";
import { claimedOf, findTicketName, formatTicketName } from "../../../src/handoff/model/ticket-name.ts";
import { recoverHolder } from "../../../src/handoff/recover/return-tickets.ts";
import { realSteps, type Steps } from "../../scenarios/handoff/handoff-actors.ts";
import { handoffScenarios } from "../../scenarios/handoff/handoff.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

type Move = (box: Box, from: string, to: string) => Promise<boolean>;

/** Claims the first ticket of the box by `move`. */
function claimingBy(move: Move): Steps["claimNext"] {
  return async (box) => {
    const session = await box.ground.session();
    const processing = await box.processing(session);
    const parent = box.layout.incoming(5);
    for (const minute of await box.disk.list(parent))
      for (const text of await box.disk.list(`${parent}/${minute}`)) {
        const found = findTicketName(text);
        if (found === undefined) continue;
        const name = claimedOf(found);
        const path = `${processing}/${formatTicketName(name)}`;
        if (!(await move(box, `${parent}/${minute}/${text}`, path))) continue;
        return { session, name, path, ticket: await getRecord(box.disk, ticketKind, path) };
      }
    return undefined;
  };
}

/** Creates the new name before it removes the old one. */
const linkAndUnlink: Move = async ({ disk }, from, to) => {
  const isLinked = await disk.link(from, to).then(
    () => true,
    () => false,
  );
  if (isLinked) await unlinkIfThere(disk, from);
  return isLinked;
};

/** Marks the ticket first, then moves the marked ticket. */
const twoRenames: Move = async ({ disk }, from, to) =>
  (await moveOnce(disk, from, `${from}.claiming`)) && (await moveOnce(disk, `${from}.claiming`, to));

/** Deletes the dead worker's ticket, then creates it again. */
const deleteAndCreate: Steps["reap"] = async (box) => {
  const own = (await box.ground.session()).holder.id;
  for (const holder of await box.disk.list(box.layout.processings)) {
    if (holder === own || !(await box.ground.settle(holder))) continue;
    for (const text of await box.disk.list(box.layout.processing(holder))) {
      const path = `${box.layout.processing(holder)}/${text}`;
      const bytes = await box.disk.readFile(path, 1_000_000);
      await box.disk.unlink(path);
      const [minute = ""] = await box.disk.list(box.layout.incoming(5));
      await box.disk.createFile(`${box.layout.incoming(5)}/${minute}/${text}`, bytes, { sync: true });
    }
    await recoverHolder(box, holder);
  }
};

/** Gives the tickets back, and only then removes what was staged. */
const ticketsFirst: Steps["reap"] = async (box) => {
  const own = (await box.ground.session()).holder.id;
  for (const holder of await box.disk.list(box.layout.processings)) {
    if (holder === own) continue;
    for (const text of await box.disk.list(box.layout.processing(holder))) {
      const [minute = ""] = await box.disk.list(box.layout.incoming(5));
      await moveOnce(
        box.disk,
        `${box.layout.processing(holder)}/${text}`,
        `${box.layout.incoming(5)}/${minute}/${text}`,
      );
    }
    if (await box.ground.settle(holder)) await recoverHolder(box, holder);
  }
};

/** Removes the payload of each ticket that it finds in no state. */
const scanStates: Steps["reap"] = async ({ disk, layout }) => {
  const seen = new Set<string>();
  const look = async (path: string): Promise<void> => {
    for (const name of await disk.list(path).catch(() => [])) {
      const ticket = findTicketName(name);
      if (ticket === undefined) await look(`${path}/${name}`);
      else seen.add(ticket.id);
    }
  };
  for (const path of [layout.processings, layout.incoming(5)]) await look(path);
  for (const shard of await disk.list(`${layout.directory}/data`))
    for (const id of await disk.list(`${layout.directory}/data/${shard}`))
      if (!seen.has(id)) await removeTree(disk, layout.payload(id));
};

/** Checks whether the key is committed, then overwrites the entry. */
async function checkThenWrite(box: Box, claim: ClaimedTicket, result: unknown): Promise<LedgerEntry> {
  const { session, name, ticket } = claim;
  const path = box.layout.ledger(ticket.manifest.key, name.replays);
  await box.ensure(parentOf(path));
  const before = await findCommitted(box, path);
  if (before !== undefined) return before;
  const { key } = ticket.manifest;
  const facts = { key, id: name.id, claims: name.claims, replays: 0, holder: session.holder.id, at: "", result };
  const committed = { ...facts, outputs: [], sent: [] };
  const temp = `${session.temp}/${randomName(box.ground.ports.random.bytes(16))}`;
  await box.disk.createFile(temp, encodeRecord(committedKind, committed), { sync: true });
  await box.disk.rename(temp, path);
  return { committed };
}

/** Names an entry by those characters of its key that are valid in a file name. */
function sanitised(box: Box, key: string): string {
  return `${box.layout.directory}/ledger/000/${key.replaceAll(/[^a-z0-9]/g, "_")}`;
}

const bySanitisedName: Partial<Steps> = {
  ledgerOf: sanitised,
  commitResult: (box, claim, result) => {
    Object.defineProperty(box.layout, "ledger", { value: (key: string) => sanitised(box, key), configurable: true });
    return realSteps.commitResult(box, claim, result);
  },
};

/**
 * Moves an entry into a segment and removes its name. A worker checks the segment before it
 * commits.
 */
const vacating: Partial<Steps> = {
  commitResult: async (box, claim, result, outputs) => {
    const before = await findRecord(box.disk, committedKind, `${box.layout.directory}/segment`);
    return before === undefined ? await realSteps.commitResult(box, claim, result, outputs) : { committed: before };
  },
  archive: async (box, claim, entry) => {
    await realSteps.archive(box, claim, entry);
    const path = box.layout.ledger(claim.ticket.manifest.key, 0);
    const temp = `${claim.session.temp}/segment`;
    await box.disk.createFile(temp, encodeRecord(committedKind, entry.committed), { sync: true });
    await box.disk.rename(temp, `${box.layout.directory}/segment`);
    await unlinkIfThere(box.disk, path);
  },
};

function inScenario(steps: Partial<Steps>, name: string): Mutant["scenario"] {
  return scenarioNamed(handoffScenarios({ ...realSteps, ...steps }), name);
}

const oneTicket = "handoff: two workers and one ticket, one is killed";

export const handoffClaimMutants: readonly Mutant[] = [
  {
    name: "claim by link and unlink",
    about: "Two workers link the ticket before either of them unlinks it.",
    scenario: inScenario({ claimNext: claimingBy(linkAndUnlink) }, oneTicket),
    breaks: /two processes have one claim/,
  },
  {
    name: "claim by two renames",
    about: "A worker that is killed between the two leaves a ticket that no process finds.",
    scenario: inScenario({ claimNext: claimingBy(twoRenames) }, oneTicket),
    breaks: /is lost/,
  },
  {
    name: "takeover by delete and create",
    about: "A reaper that is killed between the two has deleted the only copy.",
    scenario: inScenario({ reap: deleteAndCreate }, "handoff: a reaper is killed"),
    breaks: /is lost|is not in the ledger/,
  },
  {
    name: "tickets given back before staging is gone",
    about: "A worker that slept commits a ticket that another process has claimed.",
    scenario: inScenario(
      { reap: ticketsFirst },
      "handoff: a worker that sleeps before it commits, a reaper, and the next worker",
    ),
    breaks: /committed after its ticket had gone back/,
  },
  {
    name: "collection by scanning states",
    about: "The ticket moves between two listings, is found in neither, and its payload is removed.",
    scenario: inScenario({ reap: scanStates }, "handoff: a worker and a process that collects what the dead left"),
    breaks: /it is not there|stuck/,
  },
  {
    name: "ledger checked before it is written",
    about: "Two workers find that the key is not committed, and both commit.",
    scenario: inScenario({ commitResult: checkThenWrite }, "handoff: two tickets of one key and two workers"),
    breaks: /committed twice|is lost/,
  },
  {
    name: "compaction into a segment",
    about: "A worker that checked the segment before it was written commits under the name, which is free again.",
    // At the end the ledger's entries are in the segment, so only the workers' answers are checked.
    scenario: {
      ...inScenario(vacating, "handoff: two tickets of one key and two workers"),
      audit: async () => undefined,
    },
    breaks: /committed twice/,
  },
  {
    name: "ledger by sanitised names",
    about: "Two keys have one entry: the second ticket is taken for done.",
    scenario: inScenario(bySanitisedName, "handoff: two keys that look alike"),
    breaks: /is not in the ledger|entry of another key/,
  },
];
