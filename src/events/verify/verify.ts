// Verifying a log: every line, every checksum, every condition that was ever promised, judged again. Takes no lock, so others may append meanwhile.
import type { Problem, VerifyOptions, VerifyReport } from "../../common.ts";
import { findGateKind } from "../../durable/gate/gate-record.ts";
import type { Ports } from "../../ports/ports.ts";
import type { LogMode } from "../model/event-store.ts";
import { createStoreLock } from "../../locks/store/store-lock.ts";
import { checkMode, findLog, type LogRecord } from "../log/format/log-record.ts";
import { LineReader } from "../log/read/line-reader.ts";
import type { LogFiles } from "../log/log-files.ts";
import type { OpenedLog } from "../open/opened-log.ts";
import { Findings, repairable } from "../../part/findings.ts";
import { History } from "./history.ts";
import { checkIndexes } from "./index-check.ts";
import { reportLeftovers } from "./leftovers.ts";
import { mendLog, type Mended } from "./repair.ts";
import { findPublished, type Published } from "./published.ts";
import { lostType } from "./rewriter.ts";
import { checkSegment, type Checking } from "./segment-check.ts";
import { beginningOf, differenceOf, type CheckpointState } from "./checkpoint-check.ts";
import { findUnopened, modeOf } from "./unopened.ts";
import { findWay, type Stop } from "./segment-order.ts";

/** Rejects for what is no damage: no permission, an abort. Damage is reported. */
export async function verify(log: OpenedLog, options: VerifyOptions): Promise<VerifyReport> {
  return await verifyPlace(log.files, options, (work) => log.lock.withLock(work, options));
}

/** The same of a log that may be too damaged to be opened. */
export async function verifyDirectory(ports: Ports, directory: string, options: VerifyOptions): Promise<VerifyReport> {
  const findings = new Findings();
  const path = `${directory}/.holdfast`;
  const log = await findings.attempt({ path }, "The ground of this log", () => findUnopened(ports, directory));
  if (log === undefined) return { ok: false, checked: 0, problems: findings.problems };
  try {
    return await verifyPlace(log.place, options, async (work) => {
      await using lock = await createStoreLock(ports, directory);
      return await lock.withLock(work, options);
    });
  } finally {
    await log.close();
  }
}

/** Nobody else writes meanwhile. */
type WithGate = (work: () => Promise<Mended | undefined>) => Promise<Mended | undefined>;

async function verifyPlace(place: LogFiles, options: VerifyOptions, withGate: WithGate): Promise<VerifyReport> {
  const before = await check(place, options);
  const { ok, checked, problems, isNewer } = before;
  // What a newer version has written is not damaged, and not ours to mend.
  if (ok || options.repair !== true || isNewer) return { ok, checked, problems };
  const mended = await withGate(() => mendLog(place, before.mode, options.signal));
  if (mended === undefined) return { ok, checked, problems };
  const after = await check(place, options);
  return { ok: after.ok, checked: after.checked, problems: [...toldAgain(before, after, mended), ...after.problems] };
}

/** What was found before the repair, and what has become of it. */
function toldAgain(before: Checked, after: Checked, { lost, position }: Mended): Problem[] {
  const { ok } = after;
  const remedy =
    lost === 0
      ? "Nothing was lost. What did not belong to the log is in aside/."
      : `${lost} event(s) are lost: each has its position still, with an event of the type ${lostType} in its place. All else is kept, up to position ${position}. What was damaged is in aside/, or behind the end of its segment. Consumers and read models that had come further than the damage say LOG_REWOUND: reset or rebuild them.`;
  return before.problems
    .filter(({ severity }) => severity !== "note")
    .map((problem) => (problem.severity === "damage" && ok ? { ...problem, remedy, repaired: true } : problem));
}

interface Checked extends VerifyReport {
  readonly mode: LogMode;
  readonly isNewer: boolean;
}

async function check(place: LogFiles, options: VerifyOptions): Promise<Checked> {
  options.signal?.throwIfAborted();
  const findings = new Findings();
  const record = await findRecord(place, findings);
  if (record !== undefined) checkMode(record, place.directory, place.disk.volume);
  const mode = await modeOf(place, record);
  const lines = new LineReader(place);
  try {
    const followed = await followLog(place, mode, record, { findings, lines, options });
    await lookAround(place, mode, followed, { findings, options });
    const { hasDamage, problems, isNewer } = findings;
    return { ok: !hasDamage, checked: followed.standing.events, problems, mode, isNewer };
  } finally {
    await lines.close();
  }
}

async function findRecord(place: LogFiles, findings: Findings): Promise<LogRecord | undefined> {
  const { disk, directory, ground } = place;
  const path = `${directory}/log.json`;
  const before = findings.problems.length;
  const record = await findings.attempt({ path }, "The record of this log", () => findLog(disk, directory));
  if (record === undefined && findings.problems.length === before)
    findings.damage(
      { path },
      "The record of this log is missing.",
      `Restore it from a backup: it tells how this log is kept. ${repairable}`,
    );
  const gate = `${directory}/gate.json`;
  await findings.attempt({ path: gate }, "The record of the gate", () => findGateKind(ground.ports, directory));
  return record;
}

interface Following {
  readonly findings: Findings;
  readonly lines: LineReader;
  readonly options: VerifyOptions;
}

interface Followed {
  readonly logId: string;
  readonly published: Published;
  readonly way: readonly Stop[];
  readonly standing: CheckpointState;
}

async function followLog(
  place: LogFiles,
  mode: LogMode,
  record: LogRecord | undefined,
  { findings, lines, options }: Following,
): Promise<Followed> {
  const published = await findPublished(place, mode, findings);
  const way = await findWay(place, published, findings);
  const total = await bytesOf(place, way);
  let done = 0;
  const onBytes = (count: number): void => options.onProgress?.(Math.min((done += count), total), total);
  const logId = record?.id ?? place.logId;
  const checking: Checking = { place, logId, findings, history: new History(lines), signal: options.signal, onBytes };
  let standing = beginningOf(place.directory);
  for (const stop of way) {
    onBytes(stop.header?.bytes ?? 0);
    standing = await checkSegment(checking, stop, standing);
  }
  options.onProgress?.(total, total);
  compareWithEnd(published, way, standing, findings);
  return { logId, published, way, standing };
}

function compareWithEnd(
  { tip, floor }: Published,
  way: readonly Stop[],
  standing: CheckpointState,
  findings: Findings,
): void {
  const spot = { ...standing.good, path: way.at(-1)?.path ?? standing.good.path };
  const difference = tip === undefined ? undefined : differenceOf(standing, tip);
  if (difference !== undefined) findings.damage(spot, `The log is published up to ${difference}.`);
  const { segment, length } = standing;
  if (floor === undefined || length === undefined) return;
  if (segment > floor.segment || (segment === floor.segment && length >= floor.length)) return;
  const what = `Before the last restart the log was published up to segment ${floor.segment}, byte ${floor.length}, position ${floor.position}; now it ends here, with position ${standing.good.position}.`;
  const remedy =
    'Restore the file from a backup before anything is appended. (With the durability "none" a power cut does this.)';
  findings.damage(spot, what, remedy);
}

async function bytesOf({ disk }: LogFiles, way: readonly Stop[]): Promise<number> {
  let total = 0;
  for (const { path, end } of way)
    // One that is missing has been reported.
    total += end?.length ?? (await disk.stat(path).catch(() => ({ size: 0 }))).size;
  return total;
}

/** What is beside the way. */
async function lookAround(
  place: LogFiles,
  mode: LogMode,
  { logId, standing, way, published }: Followed,
  { findings, options: { repair = false, signal } }: Omit<Following, "lines">,
): Promise<void> {
  const hasAllHeaders = way.every(({ header }) => header !== undefined);
  // Others may have gone on meanwhile. Asked with findings that nobody sees: all of it was said.
  const now = await findPublished(place, mode, new Findings());
  const hasMoved = now.segment !== published.segment || now.tip?.length !== published.tip?.length;
  const leftovers = {
    // Where somebody writes, there may be more than we know.
    way: hasMoved ? way.slice(0, -1) : way,
    length: standing.length,
    published,
    now,
    isSure: hasAllHeaders && published.tip !== undefined,
    repair,
  };
  await reportLeftovers(place, leftovers, findings);
  if (hasAllHeaders) await checkIndexes(place, { logId, way, repair, signal }, findings);
  if (!findings.hasDamage) return;
  const { good } = standing;
  const remedy = `As it is, it can be read with \`holdfast events read DIR --up-to ${good.position}\`, and brought into another log with \`holdfast events export DIR --up-to ${good.position}\`.`;
  findings.note(good, `Up to here the log is good: ${good.position} event(s).`, remedy);
}
