// Verifies a box: every ticket, payload, key and ledger entry. Takes no lock, so other processes
// continue meanwhile. A repair moves damage aside and returns the tickets of dead processes; it
// deletes nothing.
import type { Problem, VerifyOptions, VerifyReport } from "../../../common.ts";
import { checkOptions } from "../../../format/known-options.ts";
import { isUnreadable } from "../../../durable/publish/record-file.ts";
import { isHoldfastError, messageOf } from "../../../errors.ts";
import { moveAside } from "../../../part/aside.ts";
import { makeId } from "../../../format/id.ts";
import type { Ports } from "../../../ports/ports.ts";
import type { Box } from "../../box/box.ts";
import { findBox } from "../../box/box-record.ts";
import { openBox } from "../../box/open-box.ts";
import { ticketStates } from "../../model/handoff.ts";
import { leaveBox } from "../../recover/return-tickets.ts";
import { ticketsIn, type FoundTicket } from "../tickets.ts";
import { Inspection, repairRemedy } from "./inspection.ts";
import { checkLedger } from "./ledger-check.ts";
import {
  checkAdopting,
  checkHolders,
  checkKeys,
  checkPayloads,
  checkStrays,
  listPayloads,
  listUnfinished,
} from "./leftovers.ts";
import { checkLanes, checkNotes, checkPause } from "./record-check.ts";
import { checkTicket } from "./ticket-check.ts";

/**
 * How many rounds a repair makes: a ticket that one round returned to the queue may itself be
 * damaged, and the next round repairs it.
 */
const roundsMax = 3;

/** Reports damage. Rejects for other failures, such as missing permission or an abort. */
export async function verify(box: Box, options: VerifyOptions): Promise<VerifyReport> {
  checkOptions("verify", options, { repair: true, onProgress: true, signal: true });
  const repaired: Problem[] = [];
  for (let round = 1; ; round++) {
    const inspection = await inspect(box, options, round === 1);
    const { ok, checked, problems, repairs } = inspection;
    if (options.repair !== true || repairs.length === 0 || round > roundsMax)
      return { ok, checked, problems: [...repairedOf(repaired, problems), ...problems] };
    for (const repair of repairs) {
      options.signal?.throwIfAborted();
      await repair();
    }
    repaired.push(...problems.filter(({ severity }) => severity !== "note"));
  }
}

/** Like `verify`, for a box that may be too damaged to open. Throws NOT_A_STORE. */
export async function verifyDirectory(ports: Ports, directory: string, options: VerifyOptions): Promise<VerifyReport> {
  const damage = await findRecordDamage(ports, directory);
  if (damage !== undefined && options.repair !== true) return { ok: false, checked: 0, problems: [damage] };
  if (damage !== undefined) {
    const newId = (): string => makeId(ports.clock.wallMs(), ports.random.bytes(16));
    await moveAside({ disk: ports.disk, directory, newId }, damage.path);
  }
  const { box, ownsGround } = await openBox(ports, directory, { create: damage !== undefined });
  try {
    const report = await verify(box, options);
    if (damage === undefined) return report;
    const remedy = "A new one was written, with a new id. The damaged one is in aside/.";
    return { ...report, problems: [{ ...damage, remedy, repaired: true }, ...report.problems] };
  } finally {
    await leaveBox(box);
    if (ownsGround) await box.ground.close();
  }
}

async function findRecordDamage({ disk }: Ports, directory: string): Promise<Problem | undefined> {
  try {
    await findBox(disk, directory);
    return undefined;
  } catch (error) {
    // A repair does not replace a record of a newer release, or one that this user may not read.
    if (!isUnreadable(error) || isHoldfastError(error, "NEWER_FORMAT", "NO_PERMISSION")) throw error;
    const remedy = `Restore it from a backup: it has the id of the box. ${repairRemedy}`;
    return { severity: "damage", path: `${directory}/box.json`, what: messageOf(error), remedy, repaired: false };
  }
}

async function inspect(box: Box, options: VerifyOptions, isFirst: boolean): Promise<Inspection> {
  options.signal?.throwIfAborted();
  const inspection = new Inspection(box, options, isFirst);
  // The order matters: a ticket is created before its payload and removed after it, and moves
  // between states meanwhile.
  const payloads = await listPayloads(inspection);
  const known = new Set(await listUnfinished(inspection));
  const tickets: FoundTicket[] = [];
  for (const state of ticketStates) for await (const found of ticketsIn(box, state)) tickets.push(found);
  for (const { name } of tickets) known.add(name.id);
  const ledgerShards = await box.names(box.layout.ledgers);
  const keyShards = await box.names(box.layout.keys);
  inspection.expect(tickets.length + ledgerShards.length + keyShards.length);
  await checkHolders(inspection);
  await checkAdopting(inspection);
  for (const found of tickets) {
    inspection.step();
    await checkTicket(inspection, found);
  }
  await checkLedger(inspection, ledgerShards);
  await checkKeys(inspection, keyShards, known);
  await checkPayloads(inspection, payloads, known);
  await checkNotes(inspection);
  await checkPause(inspection);
  await checkLanes(inspection);
  await checkStrays(inspection);
  return inspection;
}

/** Returns the problems of earlier rounds that are now gone. */
function repairedOf(before: readonly Problem[], now: readonly Problem[]): Problem[] {
  const keyOf = ({ path, what }: Problem): string => `${path}\n${what}`;
  const left = new Set(now.map(keyOf));
  const gone = new Map(before.filter((problem) => !left.has(keyOf(problem))).map((each) => [keyOf(each), each]));
  return [...gone.values()].map((problem) => ({ ...problem, remedy: done, repaired: true }));
}

const done =
  "Damaged files are in error/ with the reason, or in aside/; tickets of dead processes returned to the queue.";
