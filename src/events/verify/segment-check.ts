// Checks one segment: its header against the end of the previous segment, then each line up to its published end.
import { messageOf } from "../../errors.ts";
import type { DiskFile } from "../../ports/disk.ts";
import { findLineCrc, lineTailBytes, storedCrcOf, type Line } from "../log/format/line.ts";
import type { LogFiles } from "../log/log-files.ts";
import { emptyTip, hexOf, type Tip } from "../log/format/tip.ts";
import type { Findings, ProblemLocation } from "../../part/findings.ts";
import type { History } from "./history.ts";
import { decodeStrictly } from "./line-shape.ts";
import { isPreallocated } from "../log/read/scan.ts";
import { untrustedLines, type UntrustedLine } from "./untrusted-lines.ts";
import type { ChainedSegment } from "./published.ts";

/**
 * The point that the check has reached, as a tip. Damage makes parts of it unknown, until the next line or header
 * restores them.
 */
export interface CheckState {
  readonly segment: number;
  readonly length: number | undefined;
  readonly position: number | undefined;
  readonly crc: number | undefined;
  readonly retagged: number | undefined;
  /** Number of events checked. */
  readonly events: number;
  /** The end of the log before the first damage. */
  readonly good: ProblemLocation & { readonly position: number; readonly tip: Tip };
  readonly isGood: boolean;
}

export function startOf(directory: string): CheckState {
  const good = { path: directory, position: 0, tip: emptyTip };
  return { segment: 0, length: 0, position: 0, crc: 0, retagged: 0, events: 0, good, isGood: true };
}

const fields = ["segment", "length", "position", "crc", "retagged"] as const;

/** Describes how `said` differs from the known parts of the state. Returns undefined if it does not. */
export function differenceOf(state: CheckState, said: Tip): string | undefined {
  const different = fields.filter((field) => state[field] !== undefined && state[field] !== said[field]);
  if (different.length === 0) return undefined;
  const tell = (tip: CheckState | Tip): string =>
    different.map((field) => `${field} ${field === "crc" ? hexOf(tip.crc ?? 0) : tip[field]}`).join(", ");
  return `${tell(said)}; but it is ${tell(state)}`;
}

export interface CheckContext {
  readonly files: LogFiles;
  readonly logId: string;
  readonly findings: Findings;
  /** Set if every line is to be judged again. */
  readonly history?: History;
  readonly signal: AbortSignal | undefined;
  /** Called with the length of each piece read. */
  readonly onBytes: (count: number) => void;
  /** Called with each line before the first damage. */
  readonly onGood?: (bytes: Uint8Array, line: Line) => void | Promise<void>;
  /** Called with each whole line after the first damage. `good` is the tip before the damage. */
  readonly onRest?: (bytes: Uint8Array, line: Line, good: Tip) => void | Promise<void>;
}

/** Returns the state at the end of `segment`. */
export async function checkSegment(
  context: CheckContext,
  segment: ChainedSegment,
  before: CheckState,
): Promise<CheckState> {
  const { findings, files } = context;
  const { path } = segment;
  const walk = new SegmentWalk(context, segment, begin(context, segment, before));
  // A missing segment was reported when its header was read.
  if (segment.header === undefined && !(await files.disk.canOpen(path).catch(() => false))) return walk.lost;
  const isRead = await findings.attempt({ path }, "This segment", async () => {
    const file = await files.disk.open(path, "read");
    try {
      await walk.through(file);
    } finally {
      await file.close();
    }
    return true;
  });
  return isRead === true ? walk.state : walk.lost;
}

/** Returns the state after the header. */
function begin(
  { findings, logId }: CheckContext,
  { number, path, header }: ChainedSegment,
  before: CheckState,
): CheckState {
  const location = { path, line: 1, byte: 0 };
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
      location,
      `This segment belongs to another log, ${header.log}.`,
      "Restore the segment of this log from a backup.",
    );
  const difference = differenceOf(before, after);
  if (difference !== undefined)
    findings.damage(location, `The header claims that the previous segment ends with ${difference}.`);
  const isGood = before.isGood && difference === undefined;
  const tip = { ...after, segment: number, length: bytes, crc };
  const good = isGood ? { path, line: 1, byte: bytes, position: after.position, tip } : before.good;
  return { ...before, ...after, segment: number, length: bytes, crc, good, isGood };
}

class SegmentWalk {
  readonly #context: CheckContext;
  readonly #segment: ChainedSegment;
  #state: CheckState;
  /** The number of the last line read; the header is line 1. */
  #line = 1;

  constructor(context: CheckContext, segment: ChainedSegment, state: CheckState) {
    this.#context = context;
    this.#segment = segment;
    this.#state = state;
  }

  get state(): CheckState {
    return this.#state;
  }

  /** The state to continue with if the end of the segment is unknown. */
  get lost(): CheckState {
    const unknown = { length: undefined, position: undefined, crc: undefined, retagged: undefined };
    return { ...this.#state, ...unknown, isGood: false };
  }

  async through(file: DiskFile): Promise<void> {
    const { signal, onBytes, findings } = this.#context;
    const { end, path, header } = this.#segment;
    const { size } = await file.stat();
    let isHeader = header === undefined;
    for await (const pieces of untrustedLines(file, this.#state.length ?? 0, Math.min(size, end?.length ?? size))) {
      signal?.throwIfAborted();
      for (const piece of pieces) {
        onBytes(piece.bytes.length);
        // The first piece is read in place of the header. That was reported.
        if (isHeader) this.#state = { ...this.#state, length: piece.offset + piece.bytes.length };
        else if (!(await this.#take(piece))) return;
        isHeader = false;
      }
    }
    if (end === undefined || size >= end.length) return;
    const what = `This segment has ${size} bytes, but ${end.length} of it were published, up to position ${end.position}.`;
    findings.damage({ path, line: this.#line + 1, byte: size }, what);
    this.#state = this.lost;
  }

  /** Returns false if the log ends before this piece. */
  async #take(piece: UntrustedLine): Promise<boolean> {
    const { findings } = this.#context;
    const { path, end, floorBytes } = this.#segment;
    const { offset, bytes, isWhole } = piece;
    const { crc: seed, isGood } = this.#state;
    this.#line++;
    const location = { path, line: this.#line, byte: offset };
    const stored = isWhole ? findStoredCrc(bytes) : undefined;
    const isValid = stored !== undefined && (seed === undefined || findLineCrc(bytes, seed) === stored);
    // If nothing states how far the log goes, it ends with the last valid line. A killed writer may have left half a
    // line after that.
    const mayBeEnd =
      isPreallocated(bytes) || (isGood && (offset >= floorBytes || (floorBytes === Infinity && !isWhole)));
    if (!isValid && end === undefined && mayBeEnd) return false;
    const what = isWhole
      ? "The checksum does not match: this line is not what was written here."
      : "This line is incomplete.";
    if (!isValid) findings.damage(location, what);
    const line = isValid ? this.#decode(piece, location) : undefined;
    if (line === undefined) this.#lose(offset + bytes.length, stored);
    else await this.#follow(piece, line, location);
    return true;
  }

  #decode({ bytes }: UntrustedLine, location: ProblemLocation): Line | undefined {
    try {
      return decodeStrictly(bytes);
    } catch (error) {
      const why = messageOf(error);
      this.#context.findings.damage(location, `This line is malformed, although its checksum matches: ${why}.`);
      return undefined;
    }
  }

  async #follow({ offset, bytes }: UntrustedLine, line: Line, location: ProblemLocation): Promise<void> {
    const { findings, history } = this.#context;
    const { number } = this.#segment;
    const { position: before, retagged, events } = this.#state;
    const isNext = before === undefined || line.first === before + 1;
    if (!isNext) findings.damage(location, `This line begins with position ${line.first}, not ${before + 1}.`);
    const files = { segment: number, offset, bytes: bytes.length, first: line.first };
    const objections = (await history?.add(files, line)) ?? [];
    for (const { severity, what, remedy } of objections) findings[severity](location, what, remedy);
    const isGood = this.#state.isGood && isNext;
    const length = offset + bytes.length;
    const position = line.first + line.events.length - 1;
    const end = { length, position, crc: findStoredCrc(bytes), retagged: line.retag === undefined ? retagged : number };
    // Before any damage, all parts of the state are known.
    const tip = { segment: number, ...end } as Tip;
    this.#state = {
      segment: number,
      ...end,
      events: events + line.events.length,
      good: isGood ? { ...location, byte: length, position, tip } : this.#state.good,
      isGood,
    };
    if (isGood) await this.#context.onGood?.(bytes, line);
    else await this.#context.onRest?.(bytes, line, this.#state.good.tip);
  }

  #lose(length: number, crc: number | undefined): void {
    // If its checksum is readable, it seeds the check of the next line.
    this.#state = { ...this.#state, length, crc, position: undefined, retagged: undefined, isGood: false };
  }
}

function findStoredCrc(line: Uint8Array): number | undefined {
  return line.length > lineTailBytes ? storedCrcOf(line) : undefined;
}
