// Checking one segment: its header against the end of the one before, then line by line, as far as it is published.
import type { DiskFile } from "../../ports/disk.ts";
import { findLineCrc, lineTailBytes, storedCrcOf, type Line } from "../log/format/line.ts";
import type { LogFiles } from "../log/log-files.ts";
import type { Tip } from "../log/format/tip.ts";
import type { Findings, Spot } from "../../part/findings.ts";
import type { History } from "./history.ts";
import { decodeStrictly } from "./line-shape.ts";
import { isRoom } from "../log/publish/preallocation.ts";
import { piecesOf, type Piece } from "./pieces.ts";
import { differenceOf, type CheckpointState } from "./checkpoint-check.ts";
import type { Stop } from "./segment-order.ts";

export interface Checking {
  readonly place: LogFiles;
  readonly logId: string;
  readonly findings: Findings;
  /** Where every line is to be judged again. */
  readonly history?: History;
  readonly signal: AbortSignal | undefined;
  /** Called with each stretch that was read. */
  readonly onBytes: (count: number) => void;
  /** Called with each line up to the first damage. */
  readonly onGood?: (bytes: Uint8Array, line: Line) => void | Promise<void>;
  /** Called with each line behind damage that is whole. `good`: where the log was last good. */
  readonly onRest?: (bytes: Uint8Array, line: Line, good: Tip) => void | Promise<void>;
}

/** Where the log stands after `stop`. */
export async function checkSegment(checking: Checking, stop: Stop, before: CheckpointState): Promise<CheckpointState> {
  const { findings, place } = checking;
  const { path } = stop;
  const walk = new SegmentWalk(checking, stop, begin(checking, stop, before));
  // That it is missing was said when its header was looked for.
  if (stop.header === undefined && !(await place.disk.canOpen(path).catch(() => false))) return walk.lost;
  const isRead = await findings.attempt({ path }, "This segment", async () => {
    const file = await place.disk.open(path, "read");
    try {
      await walk.through(file);
    } finally {
      await file.close();
    }
    return true;
  });
  return isRead === true ? walk.standing : walk.lost;
}

/** Behind the header. */
function begin(
  { findings, logId }: Checking,
  { number, path, header }: Stop,
  before: CheckpointState,
): CheckpointState {
  const spot = { path, line: 1, byte: 0 };
  if (header === undefined)
    return {
      ...before,
      segment: number,
      length: 0,
      position: undefined,
      crc: undefined,
      retagged: undefined,
      isGood: false,
    };
  const { after, bytes, crc } = header;
  if (header.log !== logId)
    findings.damage(
      spot,
      `This segment is of another log, ${header.log}.`,
      "Restore the segment of this log from a backup.",
    );
  const difference = differenceOf(before, after);
  if (difference !== undefined)
    findings.damage(spot, `The header says that the segment before it ends with ${difference}.`);
  const isGood = before.isGood && difference === undefined;
  const tip = { ...after, segment: number, length: bytes, crc };
  const good = isGood ? { path, line: 1, byte: bytes, position: after.position, tip } : before.good;
  return { ...before, ...after, segment: number, length: bytes, crc, good, isGood };
}

class SegmentWalk {
  readonly #checking: Checking;
  readonly #stop: Stop;
  #standing: CheckpointState;
  /** Of the line that was read last; the header is 1. */
  #line = 1;

  constructor(checking: Checking, stop: Stop, standing: CheckpointState) {
    this.#checking = checking;
    this.#stop = stop;
    this.#standing = standing;
  }

  get standing(): CheckpointState {
    return this.#standing;
  }

  /** When nothing can be said about its end. */
  get lost(): CheckpointState {
    const unknown = { length: undefined, position: undefined, crc: undefined, retagged: undefined };
    return { ...this.#standing, ...unknown, isGood: false };
  }

  async through(file: DiskFile): Promise<void> {
    const { signal, onBytes, findings } = this.#checking;
    const { end, path, header } = this.#stop;
    const { size } = await file.stat();
    let isHeader = header === undefined;
    for await (const pieces of piecesOf(file, this.#standing.length ?? 0, Math.min(size, end?.length ?? size))) {
      signal?.throwIfAborted();
      for (const piece of pieces) {
        onBytes(piece.bytes.length);
        // What stands where the header should be was reported.
        if (isHeader) this.#standing = { ...this.#standing, length: piece.offset + piece.bytes.length };
        else if (!(await this.#take(piece))) return;
        isHeader = false;
      }
    }
    if (end === undefined || size >= end.length) return;
    const what = `This segment has ${size} bytes, but ${end.length} of it were published, up to position ${end.position}.`;
    findings.damage({ path, line: this.#line + 1, byte: size }, what);
    this.#standing = this.lost;
  }

  /** False when neither it nor anything after it counts. */
  async #take(piece: Piece): Promise<boolean> {
    const { findings } = this.#checking;
    const { path, end, floorBytes } = this.#stop;
    const { offset, bytes, isWhole } = piece;
    const { crc: seed, isGood } = this.#standing;
    this.#line++;
    const spot = { path, line: this.#line, byte: offset };
    const stored = isWhole ? findStoredCrc(bytes) : undefined;
    const isValid = stored !== undefined && (seed === undefined || findLineCrc(bytes, seed) === stored);
    // Where nobody says how far the log goes, it goes as far as it is valid. A line that a killed writer has left there does not end.
    const mayBeEnd = isRoom(bytes) || (isGood && (offset >= floorBytes || (floorBytes === Infinity && !isWhole)));
    if (!isValid && end === undefined && mayBeEnd) return false;
    const what = isWhole
      ? "This line is not what was written here: its checksum does not fit."
      : "This line does not end.";
    if (!isValid) findings.damage(spot, what);
    const line = isValid ? this.#decode(piece, spot) : undefined;
    if (line === undefined) this.#lose(offset + bytes.length, stored);
    else await this.#follow(piece, line, spot);
    return true;
  }

  #decode({ bytes }: Piece, spot: Spot): Line | undefined {
    try {
      return decodeStrictly(bytes);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#checking.findings.damage(spot, `This line makes no sense, though its checksum fits: ${why}.`);
      return undefined;
    }
  }

  async #follow({ offset, bytes }: Piece, line: Line, spot: Spot): Promise<void> {
    const { findings, history } = this.#checking;
    const { number } = this.#stop;
    const { position: before, retagged, events } = this.#standing;
    const isNext = before === undefined || line.first === before + 1;
    if (!isNext) findings.damage(spot, `This line begins with position ${line.first}; ${before + 1} is next.`);
    const place = { segment: number, offset, bytes: bytes.length, first: line.first };
    const objections = (await history?.add(place, line)) ?? [];
    for (const { severity, what, remedy } of objections) findings[severity](spot, what, remedy);
    const isGood = this.#standing.isGood && isNext;
    const length = offset + bytes.length;
    const position = line.first + line.events.length - 1;
    const end = { length, position, crc: findStoredCrc(bytes), retagged: line.retag === undefined ? retagged : number };
    // As long as all is good, all of it is known.
    const tip = { segment: number, ...end } as Tip;
    this.#standing = {
      segment: number,
      ...end,
      events: events + line.events.length,
      good: isGood ? { ...spot, byte: length, position, tip } : this.#standing.good,
      isGood,
    };
    if (isGood) await this.#checking.onGood?.(bytes, line);
    else await this.#checking.onRest?.(bytes, line, this.#standing.good.tip);
  }

  #lose(length: number, crc: number | undefined): void {
    // Its own checksum, if it can still be read, tells whether the next line is sound.
    this.#standing = { ...this.#standing, length, crc, position: undefined, retagged: undefined, isGood: false };
  }
}

function findStoredCrc(line: Uint8Array): number | undefined {
  return line.length > lineTailBytes ? storedCrcOf(line) : undefined;
}
