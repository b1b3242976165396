// Exports and imports a log in a database. The text is the same as for a log in a folder, so either
// can be imported into the other.
import type { EventBody } from "../../events/model/stored-event.ts";
import { encodeContent, type Retag, type StoredCondition } from "../../events/log/format/line.ts";
import { exportLines, type ExportOptions, type StoredLine } from "../../events/transfer/export.ts";
import { openExport, type IncomingLine } from "../../events/transfer/incoming.ts";
import { type ImportResult, type ImportOptions, mustHaveLine } from "../../events/transfer/import.ts";
import { holdfastError } from "../../errors.ts";
import type { Database, Send } from "../connection/database.ts";
import { escaped, keyOf } from "../connection/text.ts";
import type { PgPart } from "../parts.ts";
import { appendStatement, argumentsOf } from "./append-batch.ts";
import { eventColumns, headOf, type EventRow } from "./event-rows.ts";

const linesAtOnce = 500;
const lockMs = 60_000;

interface LineRow {
  readonly n: number;
  readonly first: number;
  readonly events: number;
  readonly at_ms: number;
  readonly condition: StoredCondition | null;
  readonly retag: Retag | null;
}

/** Exports up to the head at the start of the call. */
export async function* exportRows(
  database: Database,
  { p, id }: PgPart,
  { upTo = Infinity, ...options }: ExportOptions,
): AsyncGenerator<string, void> {
  options.signal?.throwIfAborted();
  const [log] = await database.query<{ head: number; lines: number }>("select head, lines from hf_log where p = $1", [
    p,
  ]);
  const { head = 0, lines = 0 } = log ?? {};
  // Only whole appends: ends with the last line at or before the position.
  const [last] = await database.query<{ n: number | null; position: number | null }>(
    `select n, first + events - 1 as position from hf_line
       where p = $1 and n <= $2 and first + events - 1 <= $3 order by n desc limit 1`,
    [p, lines, Math.min(head, upTo)],
  );
  yield* exportLines(id, last?.position ?? 0, storedRows(database, p, last?.n ?? 0), options);
}

/**
 * Imports an export into a log that is empty or has the beginning of the export. Each batch locks
 * the head for itself, and checks that nothing was appended in between.
 */
export async function importRows(
  database: Database,
  { p }: PgPart,
  chunks: AsyncIterable<Uint8Array | string>,
  { signal, onProgress }: ImportOptions,
): Promise<ImportResult> {
  signal?.throwIfAborted();
  const { lines, position: total } = await openExport(chunks);
  const [log] = await database.query<{ lines: number; head: number }>("select lines, head from hf_log where p = $1", [
    p,
  ]);
  const there = storedRows(database, p, log?.lines ?? 0);
  let known: readonly StoredLine[] = [];
  let at = 0;
  let number = 0;
  let added = 0;
  let position = log?.head ?? 0;
  let batch: IncomingLine[] = [];
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    position = await addLines(database, p, number - batch.length, batch);
    added += batch.reduce((sum, { events }) => sum + events.length, 0);
    batch = [];
    onProgress?.(position, total);
  };
  for await (const line of lines) {
    signal?.throwIfAborted();
    if (at === known.length && number < (log?.lines ?? 0)) {
      known = (await there.next()).value ?? [];
      at = 0;
    }
    const stored = known[at++];
    number++;
    if (stored !== undefined) mustHaveLine(stored, line);
    else if (batch.push(line) >= linesAtOnce) await flush();
  }
  await flush();
  onProgress?.(total, total);
  return { added, position };
}

async function* storedRows(
  database: Database,
  part: number,
  lines: number,
): AsyncGenerator<readonly StoredLine[], void> {
  for (let after = 0; after < lines; after += linesAtOnce) {
    const rows = await database.query<LineRow & Record<string, unknown>>(
      `select n, first, events, (extract(epoch from at) * 1000)::float8 as at_ms, condition, retag from hf_line
         where p = $1 and n > $2 and n <= $3 order by n`,
      [part, after, Math.min(lines, after + linesAtOnce)],
    );
    const from = rows[0]?.first ?? 1;
    const last = rows.at(-1);
    const events = await database.query<EventRow & Record<string, unknown>>(
      `select ${eventColumns}, e.body::text as body_text from hf_event e where e.p = $1 and e.pos >= $2 and e.pos <= $3 order by e.pos`,
      [part, from, last === undefined ? 0 : last.first + last.events - 1],
    );
    yield rows.map((row) => lineOf(row, events.slice(row.first - from, row.first - from + row.events)));
  }
}

function lineOf({ first, events, at_ms, condition, retag }: LineRow, rows: readonly EventRow[]): StoredLine {
  const content = encodeContent({
    condition: condition ?? undefined,
    retag: retag ?? undefined,
    events: rows.map((row) => ({ ...typeFirst(headOf(row)), ...(row.given ? { given: true as const } : {}) })),
    payload: rows.map((row) => (row as EventRow & { body_text: string }).body_text),
  });
  return { first, events, time: new Date(at_ms).toISOString(), content };
}

/** Returns the fields in the order of a log in a folder. */
function typeFirst({ id, type, tags }: ReturnType<typeof headOf>): {
  type: string;
  tags: readonly string[];
  id: string;
} {
  return { type, tags, id };
}

/** Appends lines if the log has exactly `before` lines. Returns the head. */
async function addLines(
  database: Database,
  part: number,
  before: number,
  lines: readonly IncomingLine[],
): Promise<number> {
  const path = database.location.shown;
  return await database.transaction(async (send) => {
    const [log] = await send<{ lines: number; head: number }>(
      "select lines, head from hf_log where p = $1 for update",
      [part],
    );
    if (log?.lines !== before) {
      // The answer to these lines may have been lost. In that case the log has exactly them.
      if (log?.lines === before + lines.length) return log.head;
      throw holdfastError("LOCK_LOST", `${path}: another process has appended during the import.`, { path });
    }
    for (let start = 0; start < lines.length;) {
      const isRetag = lines[start]?.retag !== undefined;
      let end = start + 1;
      while (!isRetag && end < lines.length && lines[end]?.retag === undefined) end++;
      await (isRetag ? addRetag(send, part, lines[start]) : addEvents(send, part, lines.slice(start, end)));
      start = end;
    }
    const [now] = await send<{ head: number }>("select head from hf_log where p = $1", [part]);
    return now?.head ?? 0;
  });
}

async function addEvents(send: Send, part: number, lines: readonly IncomingLine[]): Promise<void> {
  const calls = lines.map(({ content, events, time }) => {
    const { condition, payload } = JSON.parse(`{${content.slice(1)}}`) as {
      condition?: StoredCondition;
      payload: readonly EventBody[];
    };
    return {
      heads: events,
      payload: payload.map((body) => JSON.stringify(body)),
      condition: undefined,
      stored: condition,
      time,
      isAgain: false,
    };
  });
  await send(appendStatement, [part, calls.length, lockMs, true, ...argumentsOf(calls)]);
}

async function addRetag(send: Send, part: number, line: IncomingLine | undefined): Promise<void> {
  if (line?.retag === undefined) return;
  const { positions, tags } = line.retag;
  await send("select from hf_retag_1($1, $2, $3, $4::bigint[], $5::text[], $6::text[], $7, $8::timestamptz)", [
    part,
    `import.${line.number}`,
    lockMs,
    positions,
    tags.map(escaped),
    tags.map(keyOf),
    JSON.stringify({ positions, tags }),
    line.time,
  ]);
}
