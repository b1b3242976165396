// Verification of what a store has beside its parts: its record, its ground, and its lock table.
import type { VerifyOptions, VerifyReport } from "./common.ts";
import { Ground } from "./durable/liveness/ground.ts";
import { findStore, isStore, isThere, StoreLayout } from "./durable/store/store-record.ts";
import { isHoldfastError } from "./errors.ts";
import { makeId } from "./format/id.ts";
import { TablePathLocks } from "./locks/path/table-path-locks.ts";
import { moveAside } from "./part/aside.ts";
import { Findings } from "./part/findings.ts";
import { directoryOf } from "./ports/node/location.ts";
import { openNodePorts } from "./ports/node/ports.ts";
import type { Ports } from "./ports/ports.ts";
import { createStore } from "./store.ts";

const restore = "Restore the file from a backup.";
const remake = "`holdfast verify DIR --repair` makes it anew, from the record of the ground.";

/**
 * Undefined where no store is. The parts are not looked at. A repair makes a lost or damaged record
 * anew: all that it says is the id, which the ground has, too.
 */
export async function verifyStore(
  location: string | URL,
  options: VerifyOptions = {},
): Promise<VerifyReport | undefined> {
  const directory = directoryOf(location);
  const ports = await openNodePorts(directory);
  if (!(await isStore(ports.disk, directory))) return undefined;
  const before = await check(ports, directory);
  if (options.repair !== true || before.report.ok || !before.hasGround) return before.report;
  await remakeRecord(ports, directory);
  const { ok, checked, problems } = (await check(ports, directory)).report;
  const mended = before.report.problems.map((problem) =>
    ok ? { ...problem, remedy: "The record was made anew. A damaged one is in aside/.", repaired: true } : problem,
  );
  return { ok, checked, problems: ok ? mended : problems };
}

interface Checked {
  readonly report: VerifyReport;
  /** Whether the ground is whole, so that the record can be made anew. */
  readonly hasGround: boolean;
}

async function check(ports: Ports, directory: string): Promise<Checked> {
  const layout = new StoreLayout(directory);
  const findings = new Findings(restore);
  await checkGround(ports, layout, findings);
  const hasGround = !findings.hasDamage;
  await checkRecord(ports, layout, findings, hasGround ? remake : restore);
  const { hasDamage, problems } = findings;
  return { report: { ok: !hasDamage, checked: 2, problems }, hasGround };
}

async function checkGround(ports: Ports, { ground: path, files }: StoreLayout, findings: Findings): Promise<void> {
  await findings.attempt({ path }, "The ground of this store", async () => {
    const ground = await Ground.openUnjoined(ports, path);
    if (ground.id === "") findings.damage({ path }, "The ground of this store is missing.");
    else if (await isThere(ports.disk, `${path}/names.json`))
      await (await TablePathLocks.open(ground, { root: files, toLook: true })).list();
    await ground.close();
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
  const newId = (): string => makeId(ports.clock.wallMs(), ports.random.bytes(16));
  if (await isThere(ports.disk, record)) await moveAside({ disk: ports.disk, directory, newId }, record);
  await (await createStore(ports, directory)).close();
}
