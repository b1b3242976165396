// Imports an export into a log that is empty or contains the beginning of it. Positions, ids, times and conditions
// stay the same.
import { holdfastError } from "../../errors.ts";
import type { Waiting } from "../../common.ts";
import { encodeLine, tipAfter } from "../log/format/line.ts";
import { WriteSessionLost, type WriteSession, type WriterGate } from "../log/publish/publisher.ts";
import type { OpenedLog } from "../open/opened-log.ts";
import { type TransferOptions, storedLines, type StoredLine } from "./export.ts";
import type { IncomingExport, IncomingLine } from "./incoming.ts";

const batchBytesMax = 1024 * 1024;

/** The result of `importEvents`. */
export interface ImportResult {
  /** How many events were new to the log. */
  readonly added: number;
  /** Position of the last event of the log. */
  readonly position: number;
}

/** @deprecated Use `ImportResult`. */
export type Imported = ImportResult;

/** Options of `importEvents`. */
export type ImportOptions = TransferOptions & Waiting;

/**
 * Holds the gate throughout: other appends in between would take positions of the export. Throws LOG_REWOUND, with
 * the position, if the log differs from the export, and CORRUPT for an incomplete export. Lines imported before the
 * failure stay, and another import continues after them.
 */
export async function importInto(
  log: OpenedLog,
  { position: total, lines }: IncomingExport,
  { signal, timeoutMs, onProgress }: ImportOptions,
): Promise<ImportResult> {
  const hold = await log.lock.acquire({ signal, timeoutMs });
  const writer = new ImportWriter(log, hold);
  try {
    const there = await ExistingLines.of(log, await writer.begin());
    for await (const line of lines) {
      signal?.throwIfAborted();
      const known = await there.next();
      if (known !== undefined) mustHaveLine(known, line);
      else if (await writer.add(line)) onProgress?.(writer.position, total);
    }
    await writer.flush();
    onProgress?.(total, total);
    return { added: writer.added, position: writer.position };
  } finally {
    // Close the writer first: none of its disk calls may be in progress when the next process acquires the gate.
    await writer.close();
    await hold.release();
    log.growth.wakeAll();
  }
}

/** The lines that the log already has. */
class ExistingLines {
  readonly #chunks: AsyncIterator<readonly StoredLine[], void>;
  #lines: readonly StoredLine[] = [];
  #at = 0;

  static async of(log: OpenedLog, { published }: WriteSession): Promise<ExistingLines> {
    await log.view.advance(published);
    return new ExistingLines(storedLines(log, published));
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

/** Throws LOG_REWOUND unless the log has this line of the export. */
export function mustHaveLine({ first, time, content }: StoredLine, line: IncomingLine): void {
  if (first === line.first && time === line.time && content === line.content) return;
  const message = `At position ${first} this log differs from line ${line.number} of the export, so its positions cannot be kept. Import it into an empty log.`;
  throw holdfastError("LOG_REWOUND", message, { position: first });
}

/** Writes lines with their original times and contents. Ends its tenure with each segment. */
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
    // Between two tenures only the gate excludes other writers, and on a share the gate can be lost.
    if (this.#hasBegun && position !== this.position) throw takenOver(this.#log);
    this.#hasBegun = true;
    this.position = position;
    return tenure;
  }

  /** Returns true if it wrote something. */
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
    // The next tenure begins a new segment.
    if (tenure.isFull) await this.close();
  }

  async close(): Promise<void> {
    await this.#tenure?.close();
    this.#tenure = undefined;
  }
}

function takenOver({ lock: { path } }: OpenedLog, cause?: unknown): Error {
  const message =
    "Another writer judged this one dead and took over. Repeat the import: it continues where it stopped, unless another writer has appended.";
  return holdfastError("LOCK_LOST", message, { path }, cause);
}
