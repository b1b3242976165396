// Importing an export into a log that is empty, or has the beginning of it: positions, ids, times and conditions stay what they were.
import { holdfastError } from "../../errors.ts";
import type { Waiting } from "../../common.ts";
import { encodeLine, tipAfter } from "../log/format/line.ts";
import { WriteSessionLost, type WriteSession, type WriterGate } from "../log/publish/publisher.ts";
import type { OpenedLog } from "../open/opened-log.ts";
import type { TransferOptions } from "./export.ts";
import type { Incoming, IncomingLine } from "./incoming.ts";
import { storedLines, type StoredLine } from "./stored-lines.ts";

const batchBytesMax = 1024 * 1024;

export interface Imported {
  /** Events that were not there before. */
  readonly added: number;
  /** Of the last event of the log. */
  readonly position: number;
}

export type ImportOptions = TransferOptions & Waiting;

/**
 * Nobody else appends meanwhile: the positions of an import leave no room for others. LOG_REWOUND, naming the position, when the log has something else than the export;
 * CORRUPT for an export that is not whole. What was imported by then stays, and importing again goes on there.
 */
export async function importInto(
  log: OpenedLog,
  { position: total, lines }: Incoming,
  { signal, timeoutMs, onProgress }: ImportOptions,
): Promise<Imported> {
  const hold = await log.lock.acquire({ signal, timeoutMs });
  const writer = new ImportWriter(log, hold);
  try {
    const there = await LinesThere.of(log, await writer.begin());
    for await (const line of lines) {
      signal?.throwIfAborted();
      const known = await there.next();
      if (known !== undefined) compare(known, line);
      else if (await writer.add(line)) onProgress?.(writer.position, total);
    }
    await writer.flush();
    onProgress?.(total, total);
    return { added: writer.added, position: writer.position };
  } finally {
    // In this order: no call to the disk is under way when the next one comes in.
    await writer.close();
    await hold.release();
    log.growth.wakeAll();
  }
}

/** The lines that the log has already, one by one. */
class LinesThere {
  readonly #chunks: AsyncIterator<readonly StoredLine[], void>;
  #lines: readonly StoredLine[] = [];
  #at = 0;

  static async of(log: OpenedLog, { published }: WriteSession): Promise<LinesThere> {
    await log.view.advance(published);
    return new LinesThere(storedLines(log, published));
  }

  private constructor(chunks: AsyncIterator<readonly StoredLine[], void>) {
    this.#chunks = chunks;
  }

  async next(): Promise<StoredLine | undefined> {
    while (this.#at >= this.#lines.length) {
      const { done, value } = await this.#chunks.next();
      if (done === true) return undefined;
      [this.#lines, this.#at] = [value, 0];
    }
    return this.#lines[this.#at++];
  }
}

function compare({ first, time, content }: StoredLine, line: IncomingLine): void {
  if (first === line.first && time === line.time && content === line.content) return;
  const message = `At position ${first} this log has something else than the export (its line ${line.number}), so the positions would not stay what they are. Import it into an empty log.`;
  throw holdfastError("LOG_REWOUND", message, { position: first });
}

/** Writes lines as their log had them, in tenures that are as long as a segment. */
class ImportWriter {
  readonly #log: OpenedLog;
  readonly #gate: WriterGate;
  #tenure: WriteSession | undefined;
  #lines: IncomingLine[] = [];
  #bytes = 0;
  added = 0;
  position = 0;
  #hasBegun = false;

  constructor(log: OpenedLog, gate: WriterGate) {
    this.#log = log;
    this.#gate = gate;
  }

  async begin(): Promise<WriteSession> {
    const tenure = await this.#log.publisher.begin(this.#gate);
    this.#tenure = tenure;
    const { position } = tenure.published;
    // Between two tenures nothing but the gate keeps others out, and between machines a gate can be lost.
    if (this.#hasBegun && position !== this.position) throw takenOver(this.#log);
    this.#hasBegun = true;
    this.position = position;
    return tenure;
  }

  /** True when something was written. */
  async add(line: IncomingLine): Promise<boolean> {
    this.#lines.push(line);
    this.#bytes += line.content.length;
    if (this.#bytes < batchBytesMax) return false;
    await this.flush();
    return true;
  }

  async flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    const tenure = this.#tenure ?? (await this.begin());
    let next = tenure.end;
    let text = "";
    for (const { content, time, events, retag } of this.#lines) {
      const line = encodeLine(content, next.position + 1, time, next.crc);
      next = tipAfter(next, { events, retag }, line);
      text += line.text;
    }
    try {
      await tenure.publish(Buffer.from(text), next, false);
    } catch (error) {
      throw error instanceof WriteSessionLost ? takenOver(this.#log, error) : error;
    }
    this.added += next.position - this.position;
    this.position = next.position;
    [this.#lines, this.#bytes] = [[], 0];
    // The next one begins a new segment.
    if (tenure.isFull) await this.close();
  }

  async close(): Promise<void> {
    await this.#tenure?.close();
    this.#tenure = undefined;
  }
}

function takenOver({ lock: { path } }: OpenedLog, cause?: unknown): Error {
  const message =
    "Another writer took this one for dead, and took over. Repeat the import: it goes on where it stopped, if nobody has appended.";
  return holdfastError("LOCK_LOST", message, { path }, cause);
}
