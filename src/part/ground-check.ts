// Verifies a ground: its record, its lock table, and the records of its holders.
import { isThere } from "../durable/publish/directory.ts";
import { Ground } from "../durable/liveness/ground.ts";
import { GroundLayout } from "../durable/liveness/holder-record.ts";
import { isHoldfastError } from "../errors.ts";
import { findTree } from "../locks/naming/lock-names.ts";
import { LockTable } from "../locks/table/lock-table.ts";
import type { Ports } from "../ports/ports.ts";
import { moveAside, type AsideDirectory } from "./aside.ts";
import type { Findings } from "./findings.ts";

const stopFirst = "Stop the programs that use this folder, then run `--repair` again: another process may be using it.";
const repairable = "Stop the programs that use this folder, then run `--repair`, which recreates it.";

export interface GroundCheck {
  readonly repair: boolean;
  readonly findings: Findings;
  /** The directory to which damaged files are moved. */
  readonly aside: AsideDirectory;
}

/** Checks the lock table and the holders. `ground` is open. */
export async function checkGround(ground: Ground, { repair, findings, aside }: GroundCheck): Promise<void> {
  for (const { path, what, remedy } of await ground.damagedHolders()) findings.note({ path }, what, remedy);
  await checkNames(ground, { repair, findings, aside });
  const path = `${ground.layout.directory}/table`;
  if (!(await isThere(ground.ports.disk, `${path}/epochs`))) return;
  const read = async (): Promise<unknown> => await (await LockTable.open(ground, { listOnly: true })).read();
  try {
    await read();
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) return void (await findings.attempt({ path }, "The lock table", read));
    const what = `The lock table cannot be read, so no process can acquire a lock: ${error.message}`;
    const repaired = repair && !(await ground.hasOthers());
    if (repaired) await LockTable.repair(ground, (each) => moveAside(aside, each));
    const done =
      "It continues from the last readable state, with higher fences. Damaged records of epochs are in aside/.";
    findings.damage({ path: error.path }, what, repaired ? done : remedyOf(repair), { repaired });
    if (repaired) await findings.attempt({ path }, "The lock table", read);
  }
}

/** Checks the record that path locks decide once. If it is moved aside, the next process decides it again. */
async function checkNames(ground: Ground, { repair, findings, aside }: GroundCheck): Promise<void> {
  const { ports, layout } = ground;
  const path = `${layout.directory}/names.json`;
  const read = (): Promise<unknown> => findTree(ports.disk, layout.directory);
  try {
    await read();
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) return void (await findings.attempt({ path }, "The record of names", read));
    const repaired = repair && !(await ground.hasOthers()) && (await moveAside(aside, path));
    const done = "It is in aside/. The next process that locks a path recreates it.";
    findings.damage({ path }, error.message, repaired ? done : remedyOf(repair), { repaired });
  }
}

/** The remedy for damage that was not repaired. */
export function remedyOf(repair: boolean): string {
  return repair ? stopFirst : repairable;
}

/**
 * Moves an unreadable ground record aside; the next process that joins creates a new one. Returns false if nothing
 * was done: the record is readable, or another process may be using it.
 */
export async function repairGround(ports: Ports, directory: string, aside: AsideDirectory): Promise<boolean> {
  try {
    await Ground.openUnjoined(ports, directory);
    return false;
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) return false;
  }
  if (await Ground.isInUse(ports, directory)) return false;
  return await moveAside(aside, new GroundLayout(directory).groundRecord);
}
