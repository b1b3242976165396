// Verifying a log: every line, every checksum, every condition that was ever promised, judged again. Takes no lock, so others may append meanwhile.
import type { VerifyOptions, VerifyReport } from "../common.ts";
import { Ground } from "../durable/ground.ts";
import { findGateKind } from "../durable/open-gate.ts";
import type { Ports } from "../ports/ports.ts";
import type { LogMode } from "./event-store.ts";
import { joinOrLook } from "./log/joining.ts";
import { checkMode, findLog, type LogRecord } from "./log/log-record.ts";
import { LineReader } from "./log/line-reader.ts";
import { LogPlace } from "./log/place.ts";
import type { OpenedLog } from "./opened-log.ts";
import { Findings } from "./verify/findings.ts";
import { History } from "./verify/history.ts";
import { checkIndexes } from "./verify/index-check.ts";
import { reportLeftovers } from "./verify/leftovers.ts";
import { findPublished, type Published } from "./verify/published.ts";
import { checkSegment, type Checking } from "./verify/segment-check.ts";
import { beginningOf, differenceOf, type Standing } from "./verify/standing.ts";
import { findWay, type Stop } from "./verify/way.ts";

/** Rejects for what is no damage: no permission, an abort. Damage is reported. */
export async function verify(log: OpenedLog, options: VerifyOptions): Promise<VerifyReport> {
  return await verifyPlace(log.place, options);
}

/** The same of a log that may be too damaged to be opened. */
export async function verifyDirectory(ports: Ports, directory: string, options: VerifyOptions): Promise<VerifyReport> {
  const findings = new Findings();
  const path = `${directory}/.holdfast`;
  const ground = await findings.attempt({ path }, "The ground of this log", () =>
    joinOrLook(
      directory,
      () => Ground.open(ports, path),
      () => Ground.look(ports, path),
    ),
  );
  if (ground === undefined) return { ok: false, checked: 0, problems: findings.problems };
  try {
    // Read again, and reported, by whoever verifies: here it only tells whose segments these are.
    const id = (await new Findings().attempt({ path }, "", () => findLog(ports.disk, directory)))?.id;
    return await verifyPlace(new LogPlace(ground, directory, id ?? "", { isSynced: true }), options);
  } finally {
    await ground.close();
  }
}

async function verifyPlace(place: LogPlace, options: VerifyOptions): Promise<VerifyReport> {
  options.signal?.throwIfAborted();
  const findings = new Findings();
  const record = await findRecord(place, findings);
  if (record !== undefined) checkMode(record, place.directory, place.disk.volume);
  const mode = record?.mode ?? (await guessMode(place));
  const lines = new LineReader(place);
  try {
    const followed = await followLog(place, mode, record, { findings, lines, options });
    await lookAround(place, mode, followed, { findings, options });
    return { ok: !findings.hasDamage, checked: followed.standing.events, problems: findings.problems };
  } finally {
    await lines.close();
  }
}

async function findRecord(place: LogPlace, findings: Findings): Promise<LogRecord | undefined> {
  const { disk, directory, ground } = place;
  const path = `${directory}/log.json`;
  const before = findings.problems.length;
  const record = await findings.attempt({ path }, "The record of this log", () => findLog(disk, directory));
  if (record === undefined && findings.problems.length === before)
    findings.damage(
      { path },
      "The record of this log is missing.",
      "Restore it from a backup: it tells how this log is kept.",
    );
  const gate = `${directory}/gate.json`;
  await findings.attempt({ path: gate }, "The record of the gate", () => findGateKind(ground.ports, directory));
  return record;
}

async function guessMode({ disk, directory }: LogPlace): Promise<LogMode> {
  return (await disk.canOpen(`${directory}/tenures`)) ? "share" : "local";
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
  readonly standing: Standing;
}

async function followLog(
  place: LogPlace,
  mode: LogMode,
  record: LogRecord | undefined,
  { findings, lines, options }: Following,
): Promise<Followed> {
  const published = await findPublished(place, mode, findings);
  const way = await findWay(place, published, findings);
  const total = await bytesOf(place, way);
  let done = 0;
  const onBytes = (count: number): void => options.onProgress?.(Math.min((done += count), total), total);
  // Without a record the first segment tells which log this is: then it is at least one log.
  const logId = record?.id ?? way.find(({ header }) => header !== undefined)?.header?.log ?? "";
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

function compareWithEnd({ tip, floor }: Published, way: readonly Stop[], standing: Standing, findings: Findings): void {
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

async function bytesOf({ disk }: LogPlace, way: readonly Stop[]): Promise<number> {
  let total = 0;
  for (const { path, end } of way)
    // One that is missing has been reported.
    total += end?.length ?? (await disk.stat(path).catch(() => ({ size: 0 }))).size;
  return total;
}

/** What is beside the way. */
async function lookAround(
  place: LogPlace,
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
    published: published.segment,
    newest: now.segment,
    isSure: hasAllHeaders && published.tip !== undefined,
    repair,
  };
  await reportLeftovers(place, leftovers, findings);
  if (hasAllHeaders) await checkIndexes(place, { logId, way, repair, signal }, findings);
  if (!findings.hasDamage) return;
  const { good } = standing;
  const remedy = "What can be read up to here can be kept: `holdfast events read DIR --up-to N`. Restore the rest.";
  findings.note(good, `Up to here the log is good: ${good.position} event(s).`, remedy);
}
