// Verifies a log: every line, every checksum, and every condition is judged again. Takes no lock,
// so other processes may append meanwhile.
import type { Problem, VerifyOptions, VerifyReport } from "../../common.ts";
import { findGateKind } from "../../durable/gate/gate-record.ts";
import type { Ports } from "../../ports/ports.ts";
import type { LogMode } from "../model/event-store.ts";
import { createStoreLock } from "../../locks/store/store-lock.ts";
import { checkMode, findLog, type LogRecord } from "../log/format/log-record.ts";
import { LineReader } from "../log/read/line-reader.ts";
import type { LogFiles } from "../log/log-files.ts";
import type { OpenedLog } from "../open/opened-log.ts";
import { Findings } from "../../part/findings.ts";
import { History } from "./history.ts";
import { checkIndexes } from "./index-check.ts";
import { reportLeftovers } from "./leftovers.ts";
import { repairLog, type Repaired } from "./repair.ts";
import { findPublished, findSegments, repairable, restore, type Published, type ChainedSegment } from "./published.ts";
import { lostType } from "./rewriter.ts";
import { startOf, checkSegment, differenceOf, type CheckContext, type CheckState } from "./segment-check.ts";
import { findUnopened, modeOf } from "./unopened.ts";

/** Reports damage; rejects for other failures: no permission, an abort. */
export async function verify(log: OpenedLog, options: VerifyOptions): Promise<VerifyReport> {
  return await verifyPlace(log.files, options, (work) => log.lock.withLock(work, options));
}

/** As `verify`, for a log that may be too damaged to be opened. */
export async function verifyDirectory(ports: Ports, directory: string, options: VerifyOptions): Promise<VerifyReport> {
  const findings = new Findings(restore);
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

/** Runs the work while no other process writes. */
type WithGate = (work: () => Promise<Repaired | undefined>) => Promise<Repaired | undefined>;

async function verifyPlace(place: LogFiles, options: VerifyOptions, withGate: WithGate): Promise<VerifyReport> {
  const before = await check(place, options);
  const { ok, checked, problems, isNewer } = before;
  // Files of a newer version are not damaged, and must not be repaired by this one.
  if (ok || options.repair !== true || isNewer) return { ok, checked, problems };
  const repaired = await withGate(() => repairLog(place, before.mode, options.signal));
  if (repaired === undefined) return { ok, checked, problems };
  const after = await check(place, options);
  return {
    ok: after.ok,
    checked: after.checked,
    problems: [...problemsBefore(before, after, repaired), ...after.problems],
  };
}

/** The problems from before the repair, with what was done about them. */
function problemsBefore(before: Checked, after: Checked, { lost, position }: Repaired): Problem[] {
  const { ok } = after;
  const remedy =
    lost === 0
      ? "Nothing was lost. Files that do not belong to the log are in aside/."
      : `${lost} event(s) are lost: at the position of each stands an event of the type ${lostType}. All others are kept, up to position ${position}. Damaged parts are in aside/, or behind the end of their segment. Consumers and read models that had come further than the damage fail with LOG_REWOUND: reset or rebuild them.`;
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
  const findings = new Findings(restore);
  const record = await findRecord(place, findings);
  if (record !== undefined) checkMode(record, place.directory, place.disk.volume);
  const mode = await modeOf(place, record);
  const lines = new LineReader(place);
  try {
    const checkedLines = await checkLines(place, mode, record, { findings, lines, options });
    await checkSurroundings(place, mode, checkedLines, { findings, options });
    const { hasDamage, problems, isNewer } = findings;
    return { ok: !hasDamage, checked: checkedLines.state.events, problems, mode, isNewer };
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
      `Restore it from a backup: it holds the id and the mode of the log. ${repairable}`,
    );
  const gate = `${directory}/gate.json`;
  await findings.attempt({ path: gate }, "The record of the gate", () => findGateKind(ground.ports, directory));
  return record;
}

interface CheckTools {
  readonly findings: Findings;
  readonly lines: LineReader;
  readonly options: VerifyOptions;
}

interface CheckedLines {
  readonly logId: string;
  readonly published: Published;
  readonly segments: readonly ChainedSegment[];
  readonly state: CheckState;
}

async function checkLines(
  place: LogFiles,
  mode: LogMode,
  record: LogRecord | undefined,
  { findings, lines, options }: CheckTools,
): Promise<CheckedLines> {
  const published = await findPublished(place, mode, findings);
  const segments = await findSegments(place, published, findings);
  const total = await bytesOf(place, segments);
  let done = 0;
  const onBytes = (count: number): void => options.onProgress?.(Math.min((done += count), total), total);
  const logId = record?.id ?? place.logId;
  const context: CheckContext = {
    place,
    logId,
    findings,
    history: new History(lines),
    signal: options.signal,
    onBytes,
  };
  let state = startOf(place.directory);
  for (const segment of segments) {
    onBytes(segment.header?.bytes ?? 0);
    state = await checkSegment(context, segment, state);
  }
  options.onProgress?.(total, total);
  compareWithEnd(published, segments, state, findings);
  return { logId, published, segments, state };
}

function compareWithEnd(
  { tip, floor }: Published,
  segments: readonly ChainedSegment[],
  state: CheckState,
  findings: Findings,
): void {
  const spot = { ...state.good, path: segments.at(-1)?.path ?? state.good.path };
  const difference = tip === undefined ? undefined : differenceOf(state, tip);
  if (difference !== undefined) findings.damage(spot, `The log is published up to ${difference}.`);
  const { segment, length } = state;
  if (floor === undefined || length === undefined) return;
  if (segment > floor.segment || (segment === floor.segment && length >= floor.length)) return;
  const what = `Before the last restart the log was published up to segment ${floor.segment}, byte ${floor.length}, position ${floor.position}. Now it ends here, at position ${state.good.position}.`;
  const remedy =
    'Restore the file from a backup before you append anything. (With the durability "none" a power cut does this.)';
  findings.damage(spot, what, remedy);
}

async function bytesOf({ disk }: LogFiles, segments: readonly ChainedSegment[]): Promise<number> {
  let total = 0;
  for (const { path, end } of segments)
    // A missing one was reported.
    total += end?.length ?? (await disk.stat(path).catch(() => ({ size: 0 }))).size;
  return total;
}

/** Checks what lies beside the lines: other segments, index files. */
async function checkSurroundings(
  place: LogFiles,
  mode: LogMode,
  { logId, state, segments, published }: CheckedLines,
  { findings, options: { repair = false, signal } }: Omit<CheckTools, "lines">,
): Promise<void> {
  const hasAllHeaders = segments.every(({ header }) => header !== undefined);
  // Writers may have gone on. The findings are dropped: everything in them was reported.
  const now = await findPublished(place, mode, new Findings());
  const hasMoved = now.segment !== published.segment || now.tip?.length !== published.tip?.length;
  const leftovers = {
    // A segment that is being written to may be longer by now.
    segments: hasMoved ? segments.slice(0, -1) : segments,
    length: state.length,
    published,
    now,
    isSure: hasAllHeaders && published.tip !== undefined,
    repair,
  };
  await reportLeftovers(place, leftovers, findings);
  if (hasAllHeaders) await checkIndexes(place, { logId, segments, repair, signal }, findings);
  if (!findings.hasDamage) return;
  const { good } = state;
  const remedy = `Up to there it can be read with \`holdfast events read DIR --up-to ${good.position}\`, and brought into another log with \`holdfast events export DIR --up-to ${good.position}\`.`;
  findings.note(good, `Up to here the log is good: ${good.position} event(s).`, remedy);
}
