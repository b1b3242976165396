// Verifies a store without its parts: its record, its ground, and its lock table.
import type { VerifyOptions, VerifyReport } from "./common.ts";
import { Ground } from "./durable/liveness/ground.ts";
import { isThere } from "./durable/publish/directory.ts";
import { findStore, isStore, StoreLayout } from "./durable/store/store-record.ts";
import { isHoldfastError } from "./errors.ts";
import { makeId } from "./format/id.ts";
import { TablePathLocks } from "./locks/path/table-path-locks.ts";
import { isBeingAdopted } from "./part/adoption.ts";
import { moveAside, type AsideDirectory } from "./part/aside.ts";
import { Findings } from "./part/findings.ts";
import { checkGround, repairGround, type GroundCheck } from "./part/ground-check.ts";
import { directoryOf, isPostgres } from "./ports/node/location.ts";
import { openNodePorts } from "./ports/node/ports.ts";
import type { Ports } from "./ports/ports.ts";
import { createStore } from "./store.ts";

const restore = "Restore the file from a backup.";
const remake = "`holdfast verify DIR --repair` makes it anew, from the record of the ground.";

const completeAdoption = "`holdfast init DIR --adopt` completes the adoption that was interrupted.";

/**
 * Returns undefined if there is no store. Does not check the parts. A repair recreates a lost or damaged record,
 * which contains only the id; the ground has that too.
 */
export async function verifyStore(
  location: string | URL,
  options: VerifyOptions = {},
): Promise<VerifyReport | undefined> {
  if (isPostgres(location)) return await (await import("./postgres/by-location.ts")).verifyStoreAt(location);
  const directory = directoryOf(location);
  const ports = await openNodePorts(directory);
  if (!(await isStore(ports.disk, directory))) return undefined;
  const { repair = false } = options;
  const before = await check(ports, directory, repair);
  if (!repair || before.report.ok) return before.report;
  if (before.hasGround) await remakeRecord(ports, directory);
  else if (await repairGround(ports, new StoreLayout(directory).ground, asideOf(ports, directory)))
    await (await createStore(ports, directory)).close();
  const { ok, checked, problems } = (await check(ports, directory, repair)).report;
  const mended = before.report.problems.map((problem) =>
    ok && !problem.repaired
      ? { ...problem, remedy: "The record was made anew. A damaged one is in aside/.", repaired: true }
      : problem,
  );
  return { ok, checked, problems: ok ? mended : problems };
}

/** Returns undefined if there are no lone path locks: in a store, or if nothing was ever locked. */
export async function verifyPathLocks(
  location: string | URL,
  { repair = false }: VerifyOptions = {},
): Promise<VerifyReport | undefined> {
  // Those of a database are in a store.
  if (isPostgres(location)) return undefined;
  const directory = directoryOf(location);
  const ports = await openNodePorts(directory);
  const path = `${directory}/.holdfast`;
  if (!(await isThere(ports.disk, `${path}/names.json`)) || (await isStore(ports.disk, directory))) return undefined;
  const aside = asideOf(ports, path);
  const findings = new Findings(restore);
  const isRemade = repair && (await repairGround(ports, path, aside));
  const remedy = "It is in aside/. The next process makes it anew.";
  if (isRemade) findings.damage({ path }, "The record of the ground cannot be read.", remedy, { repaired: true });
  await findings.attempt({ path }, "The ground of these locks", async () => {
    await using ground = await Ground.openUnjoined(ports, path);
    await checkGround(ground, { repair, findings, aside });
  });
  return { ok: !findings.hasDamage, checked: 1, problems: findings.problems };
}

function asideOf(ports: Ports, directory: string): AsideDirectory {
  return { disk: ports.disk, directory, newId: () => makeId(ports.clock.wallMs(), ports.random.bytes(16)) };
}

interface Checked {
  readonly report: VerifyReport;
  /** True if the ground is intact, so that the record can be recreated. */
  readonly hasGround: boolean;
}

async function check(ports: Ports, directory: string, repair: boolean): Promise<Checked> {
  const layout = new StoreLayout(directory);
  const findings = new Findings(restore);
  await checkGroundOf(ports, layout, { repair, findings, aside: asideOf(ports, directory) });
  const hasGround = !findings.hasDamage;
  await checkRecord(ports, layout, findings, hasGround ? remake : restore);
  if (await isBeingAdopted(ports.disk, directory))
    findings.damage({ path: directory }, "The part that this store was made of is not back in it.", completeAdoption);
  const { hasDamage, problems } = findings;
  return { report: { ok: !hasDamage, checked: 2, problems }, hasGround };
}

async function checkGroundOf(ports: Ports, { ground: path, files }: StoreLayout, options: GroundCheck): Promise<void> {
  const { findings } = options;
  await findings.attempt({ path }, "The ground of this store", async () => {
    const ground = await Ground.openUnjoined(ports, path);
    try {
      if (ground.id === "") findings.damage({ path }, "The ground of this store is missing.");
      else await checkGround(ground, options);
      if (!findings.hasDamage && (await isThere(ports.disk, `${path}/names.json`)))
        await (await TablePathLocks.open(ground, { root: files, listOnly: true })).list();
    } finally {
      await ground.close();
    }
  });
}

async function checkRecord(ports: Ports, layout: StoreLayout, findings: Findings, remedy: string): Promise<void> {
  const { directory, record: path } = layout;
  try {
    const found = await findStore(ports.disk, directory);
    if (found === undefined) findings.damage({ path }, "The record of this store is missing.", remedy);
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    findings.damage({ path }, `The record of this store cannot be read: ${error.message}`, remedy);
  }
}

async function remakeRecord(ports: Ports, directory: string): Promise<void> {
  const { record } = new StoreLayout(directory);
  if (await isThere(ports.disk, record)) await moveAside(asideOf(ports, directory), record);
  await (await createStore(ports, directory)).close();
}
