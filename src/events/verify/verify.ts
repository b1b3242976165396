// Verifies a log: checks every line, its checksum and its condition again. Takes no lock, so other processes may
// append meanwhile.
import type { Problem, VerifyOptions, VerifyReport } from "../../common.ts";
import { findGateKind } from "../../durable/gate/gate-record.ts";
import { isHoldfastError } from "../../errors.ts";
import { makeId } from "../../format/id.ts";
import type { Ports } from "../../ports/ports.ts";
import type { LogMode } from "../model/event-store.ts";
import { createStoreLock } from "../../locks/store/store-lock.ts";
import { checkMode, findLog, type LogRecord } from "../log/format/log-record.ts";
import { LineReader } from "../log/read/line-reader.ts";
import type { LogFiles } from "../log/log-files.ts";
import type { OpenedLog } from "../open/opened-log.ts";
import { moveAside } from "../../part/aside.ts";
import { Findings } from "../../part/findings.ts";
import { checkGround, repairGround, remedyOf } from "../../part/ground-check.ts";
import { History } from "./history.ts";
import { checkIndexes } from "./index-check.ts";
import { reportLeftovers } from "./leftovers.ts";
import { repairLog, type RepairResult } from "./repair.ts";
import {
  findPublished,
  findSegments,
  repairRemedy,
  restoreRemedy,
  type PublishedSegments,
  type ChainedSegment,
} from "./published.ts";
import { lostType } from "./rewriter.ts";
import { startOf, checkSegment, differenceOf, type CheckContext, type CheckState } from "./segment-check.ts";
import { findUnopenedLog, modeOf } from "./unopened.ts";
import { checkWork } from "./work-check.ts";

/** Returns a report of all damage. Rejects for other failures, such as missing permission or an abort. */
export async function verify(log: OpenedLog, options: VerifyOptions): Promise<VerifyReport> {
  return await verifyPlace(log.files, options, (work) => log.lock.withLock(work, options));
}

/** Like `verify`, for a log that may be too damaged to open. */
export async function verifyDirectory(ports: Ports, directory: string, options: VerifyOptions): Promise<VerifyReport> {
  const findings = new Findings(restoreRemedy);
  const path = `${directory}/.holdfast`;
  const { clock, random, disk } = ports;
  const aside = { disk, directory, newId: () => makeId(clock.wallMs(), random.bytes(16)) };
  const isRemade = options.repair === true && (await repairGround(ports, path, aside));
  const log = await findings.attempt({ path }, "The ground of this log", () => findUnopenedLog(ports, directory));
  if (log === undefined) return { ok: false, checked: 0, problems: findings.problems };
  const remedy = "It is in aside/, and a new one was created.";
  if (isRemade)
    findings.damage({ path }, "The record of the ground of this log cannot be read.", remedy, { repaired: true });
  try {
    const { problems, ...report } = await verifyPlace(log.files, options, async (work) => {
      await using lock = await createStoreLock(ports, directory);
      return await lock.withLock(work, options);
    });
    return { ...report, problems: [...findings.problems, ...problems] };
  } finally {
    await log.close();
  }
}

/** Runs the work under the gate, so that no other process writes. */
type WithGate = (work: () => Promise<RepairResult | undefined>) => Promise<RepairResult | undefined>;

async function verifyPlace(files: LogFiles, options: VerifyOptions, withGate: WithGate): Promise<VerifyReport> {
  const before = await check(files, options);
  const { ok, checked, problems, isNewer } = before;
  // Files of a newer version are not damaged, and this version must not repair them.
  if (ok || options.repair !== true || isNewer) return { ok, checked, problems };
  const repaired = await withGate(() => repairLog(files, before.mode, options.signal));
  if (repaired === undefined) return { ok, checked, problems };
  const after = await check(files, options);
  return {
    ok: after.ok,
    checked: after.checked,
    problems: [...problemsBefore(before, after, repaired), ...after.problems],
  };
}

/** Returns the problems found before the repair, each with the action that was taken. */
function problemsBefore(before: Checked, after: Checked, { lost, position }: RepairResult): Problem[] {
  const { ok } = after;
  const remedy =
    lost === 0
      ? "Nothing was lost. Files that do not belong to the log are in aside/."
      : `${lost} event(s) are lost: each is replaced by an event of the type ${lostType} at its position. All others are kept, up to position ${position}. Damaged parts are in aside/, or after the end of their segment. Consumers and read models that were past the damage fail with LOG_REWOUND: reset or rebuild them.`;
  return before.problems
    .filter(({ severity }) => severity !== "note")
    .map((problem) => (problem.severity === "damage" && ok ? { ...problem, remedy, repaired: true } : problem));
}

interface Checked extends VerifyReport {
  readonly mode: LogMode;
  readonly isNewer: boolean;
}

async function check(files: LogFiles, options: VerifyOptions): Promise<Checked> {
  options.signal?.throwIfAborted();
  const findings = new Findings(restoreRemedy);
  const { repair = false, signal } = options;
  await checkKinds(files, repair, findings);
  const record = await findRecord(files, findings, repair);
  if (record !== undefined) checkMode(record, files.directory, files.disk.volume);
  const mode = await modeOf(files, record);
  const lines = new LineReader(files);
  try {
    const checkedLines = await checkLines(files, mode, record, { findings, lines, options });
    await checkSurroundings(files, mode, checkedLines, { findings, options });
    await checkWork(files, { repair, signal }, findings);
    // If the ground belongs to a store, it is checked with the store.
    if (files.ground.layout.directory === `${files.directory}/.holdfast`)
      await checkGround(files.ground, { repair, findings, aside: files });
    const { hasDamage, problems, isNewer } = findings;
    return { ok: !hasDamage, checked: checkedLines.state.events, problems, mode, isNewer };
  } finally {
    await lines.close();
  }
}

/** Moves a directory aside that stands where a file belongs: the file is created again. */
async function checkKinds(files: LogFiles, repair: boolean, findings: Findings): Promise<void> {
  for (const name of ["head", ".store.lock", ".store.next"]) {
    const path = `${files.directory}/${name}`;
    if ((await files.disk.findStat(path))?.kind !== "directory") continue;
    const repaired = repair && (await moveAside(files, path));
    const remedy = repaired ? "It is in aside/." : "Move it away, or call `--repair`.";
    findings.damage({ path }, "This is a directory, but a file belongs here.", remedy, { repaired });
  }
}

async function findRecord(files: LogFiles, findings: Findings, repair: boolean): Promise<LogRecord | undefined> {
  const { disk, directory } = files;
  const path = `${directory}/log.json`;
  const before = findings.problems.length;
  const record = await findings.attempt({ path }, "The record of this log", () => findLog(disk, directory));
  if (record === undefined && findings.problems.length === before)
    findings.damage(
      { path },
      "The record of this log is missing.",
      `Restore it from a backup: it has the id and the mode of the log. ${repairRemedy}`,
    );
  await checkGate(files, findings, repair);
  return record;
}

/** The next process that opens the log decides the kind of its gate again. */
async function checkGate(files: LogFiles, findings: Findings, repair: boolean): Promise<void> {
  const { directory, ground } = files;
  const path = `${directory}/gate.json`;
  const read = (): Promise<unknown> => findGateKind(ground.ports, directory);
  try {
    await read();
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT"))
      return void (await findings.attempt({ path }, "The record of the gate", read));
    const repaired = repair && !(await ground.hasOthers()) && (await moveAside(files, path));
    const remedy = repaired ? "It is in aside/. The next process creates a new one." : remedyOf(repair);
    findings.damage({ path }, error.message, remedy, { repaired });
  }
}

interface CheckTools {
  readonly findings: Findings;
  readonly lines: LineReader;
  readonly options: VerifyOptions;
}

interface CheckedLines {
  readonly logId: string;
  readonly published: PublishedSegments;
  readonly segments: readonly ChainedSegment[];
  readonly state: CheckState;
}

async function checkLines(
  files: LogFiles,
  mode: LogMode,
  record: LogRecord | undefined,
  { findings, lines, options }: CheckTools,
): Promise<CheckedLines> {
  const published = await findPublished(files, mode, findings);
  const segments = await findSegments(files, published, findings);
  const total = await bytesOf(files, segments);
  let done = 0;
  const onBytes = (count: number): void => options.onProgress?.(Math.min((done += count), total), total);
  const logId = record?.id ?? files.logId;
  const context: CheckContext = {
    files,
    logId,
    findings,
    history: new History(lines),
    signal: options.signal,
    onBytes,
  };
  let state = startOf(files.directory);
  for (const segment of segments) {
    onBytes(segment.header?.bytes ?? 0);
    state = await checkSegment(context, segment, state);
  }
  options.onProgress?.(total, total);
  compareWithEnd(published, segments, state, findings);
  return { logId, published, segments, state };
}

function compareWithEnd(
  { tip, floor }: PublishedSegments,
  segments: readonly ChainedSegment[],
  state: CheckState,
  findings: Findings,
): void {
  const location = { ...state.good, path: segments.at(-1)?.path ?? state.good.path };
  const difference = tip === undefined ? undefined : differenceOf(state, tip);
  if (difference !== undefined) findings.damage(location, `The log is published up to ${difference}.`);
  const { segment, length } = state;
  if (floor === undefined || length === undefined) return;
  if (segment > floor.segment || (segment === floor.segment && length >= floor.length)) return;
  const what = `Before the last restart the log was published up to segment ${floor.segment}, byte ${floor.length}, position ${floor.position}. Now it ends here, at position ${state.good.position}.`;
  const remedy =
    'Restore the file from a backup before you append anything. (With the durability "none" a power cut does this.)';
  findings.damage(location, what, remedy);
}

async function bytesOf({ disk }: LogFiles, segments: readonly ChainedSegment[]): Promise<number> {
  let total = 0;
  for (const { path, end } of segments)
    // If a segment is missing, that was reported.
    total += end?.length ?? (await disk.stat(path).catch(() => ({ size: 0 }))).size;
  return total;
}

/** Checks the files beside the lines: other segments, index files. */
async function checkSurroundings(
  files: LogFiles,
  mode: LogMode,
  { logId, state, segments, published }: CheckedLines,
  { findings, options: { repair = false, signal } }: Omit<CheckTools, "lines">,
): Promise<void> {
  const hasAllHeaders = segments.every(({ header }) => header !== undefined);
  // Writers may have continued meanwhile. Drop these findings: everything in them was reported.
  const now = await findPublished(files, mode, new Findings());
  const hasMoved = now.segment !== published.segment || now.tip?.length !== published.tip?.length;
  const leftovers = {
    // The last segment may have grown by now.
    segments: hasMoved ? segments.slice(0, -1) : segments,
    length: state.length,
    published,
    now,
    isSure: hasAllHeaders && published.tip !== undefined,
    repair,
  };
  await reportLeftovers(files, leftovers, findings);
  if (hasAllHeaders) await checkIndexes(files, { logId, segments, repair, signal }, findings);
  if (!findings.hasDamage) return;
  const { good } = state;
  const remedy = `Read it up to there with \`holdfast events read DIR --up-to ${good.position}\`, or copy it into another log with \`holdfast events export DIR --up-to ${good.position}\`.`;
  findings.note(good, `Up to here the log is good: ${good.position} event(s).`, remedy);
}
