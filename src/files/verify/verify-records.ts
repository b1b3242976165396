// Verifies the records of a tree that cannot be derived: the change log and the sessions.
import { ensureDirectory, listIfThere } from "../../durable/publish/directory.ts";
import { getRecord } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord } from "../../format/record.ts";
import { describeDamage, type Findings } from "../../part/findings.ts";
import { changeKind, damagedChange } from "../change-log/change-record.ts";
import { recordsIn, segmentBytesMax, segmentLine } from "../change-log/segment.ts";
import { SessionLog } from "../sessions/session-log.ts";
import { replaceRecord } from "../tree/damaged-record.ts";
import type { FilesLayout } from "../tree/layout.ts";
import type { Tree } from "../tree/tree.ts";

export interface RecordsOptions {
  readonly findings: Findings;
  readonly repair: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called for each record. */
  readonly onRecord: () => void;
}

export async function verifyRecords(tree: Tree, options: RecordsOptions): Promise<void> {
  await verifyChanges(tree, options);
  await verifySessions(tree, options);
}

async function verifyChanges(tree: Tree, options: RecordsOptions): Promise<void> {
  const { layout, disk, changes } = tree;
  const last = await changes.last();
  for (let number = 1; number <= last; number++) {
    // Reading a missing file yields the error that explains it.
    const read = async (): Promise<unknown> =>
      (await changes.findRecord(number)) ?? (await getRecord(disk, changeKind, layout.change(number)));
    const why = await findDamage(`change ${number}`, options, read);
    if (why === undefined) continue;
    const isFolded = (await disk.findStat(layout.changeSegment(number))) !== undefined;
    const path = isFolded ? layout.changeSegment(number) : layout.change(number);
    const repaired = options.repair && !why.isNewer;
    if (repaired && isFolded) {
      number = await reportMended(tree, number, options);
      continue;
    }
    if (repaired) await replaceChange(tree, number, why.what);
    const remedy = repaired ? replacedByRepair : restoreChange;
    options.findings.damage({ path }, why.what, why.isNewer ? "Upgrade Holdfast here." : remedy, { repaired });
  }
}

const replacedByRepair = "It was moved aside, and replaced by a change of the whole tree.";
const restoreChange =
  "Restore it from a backup, or run `verify` with `repair`. Until then it counts as a change of the whole tree.";

/** Replaces all damaged lines of a segment from `number` on in one step, and returns the last number of the segment. */
async function reportMended(tree: Tree, number: number, { findings, onRecord }: RecordsOptions): Promise<number> {
  const { layout, ground } = tree;
  const path = layout.changeSegment(number);
  const { last } = layout.numbersOf(layout.blockOf(number));
  const mended = await mendSegment(ground.staging, layout, number);
  for (const each of mended)
    findings.damage({ path }, `Change ${each} is damaged.`, replacedByRepair, { repaired: true });
  for (let each = number + 1; each <= last; each++) onRecord();
  return last;
}

async function replaceChange({ layout, ground, disk }: Tree, number: number, what: string): Promise<void> {
  const { staging } = ground;
  const record = encodeRecord(changeKind, { id: randomName(staging.random.bytes(16)), ...damagedChange(what) });
  // A person may have deleted a whole block, or its segment.
  await ensureDirectory(disk, layout.changeBlock(number));
  await replaceRecord(staging, layout.directory, layout.change(number), record);
}

/** Replaces each unreadable line by a change of the whole tree, and returns their numbers. */
async function mendSegment(staging: Staging, layout: FilesLayout, number: number): Promise<number[]> {
  const { disk } = staging;
  const { first, last } = layout.numbersOf(layout.blockOf(number));
  const path = layout.changeSegment(number);
  const records = recordsIn(await disk.readFile(path, segmentBytesMax).catch(() => new Uint8Array()));
  const mended: number[] = [];
  const lines: string[] = [];
  for (let each = first; each <= last; each++) {
    const id = randomName(staging.random.bytes(16));
    const lost = encodeRecord(changeKind, { id, ...damagedChange(`Change ${each} is damaged.`) });
    lines.push(segmentLine(each, records.get(each) ?? lost));
    if (!records.has(each)) mended.push(each);
  }
  await replaceRecord(staging, layout.directory, path, Buffer.from(lines.join("")));
  return mended;
}

async function verifySessions({ layout, disk, ground }: Tree, options: RecordsOptions): Promise<void> {
  const { findings, repair, signal, onRecord } = options;
  for (const session of await namesIn(disk, layout.sessions)) {
    const log = SessionLog.at(ground.staging, `${layout.sessions}/${session}`);
    const found = [];
    for await (const damage of log.damages(onRecord)) {
      signal?.throwIfAborted();
      found.push(damage);
    }
    const isMended = repair && found.some(({ state }) => state === "damaged");
    if (isMended) await log.mend();
    for (const { path, what, state } of found)
      if (state === "replaced") findings.note({ path }, what, lost);
      else if (state === "newer") findings.damage({ path }, what, "Upgrade Holdfast here.");
      else findings.damage({ path }, what, isMended ? lost : restore, { repaired: isMended });
  }
}

const restore =
  "Restore it from a backup, or run `verify` with `repair`. Until then the session reports it as lost, and continues.";
const lost = "It is lost, and the session reports that in its place. The damaged record is in aside/.";

interface Damage {
  readonly what: string;
  readonly isNewer: boolean;
}

async function findDamage(
  subject: string,
  { signal, onRecord }: RecordsOptions,
  read: () => Promise<unknown>,
): Promise<Damage | undefined> {
  signal?.throwIfAborted();
  onRecord();
  try {
    await read();
    return undefined;
  } catch (error) {
    const { what } = describeDamage(`${subject[0]?.toUpperCase()}${subject.slice(1)}`, error);
    return { what, isNewer: isHoldfastError(error, "NEWER_FORMAT") };
  }
}

/** Returns names in order; empty if there is no such directory. */
export async function namesIn(disk: Tree["disk"], directory: string): Promise<string[]> {
  return (await listIfThere(disk, directory)).sort();
}
