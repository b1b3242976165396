// Verifies an event log in a database: its head against its events, its lines, and its tags.
import type { Problem, VerifyOptions, VerifyReport } from "../../common.ts";
import type { Database } from "../connection/database.ts";
import type { PgPart } from "../parts.ts";

const positionsAtOnce = 10_000;

interface Range {
  readonly events: number;
  readonly first: number | null;
  readonly last: number | null;
  readonly untagged: number;
  readonly strays: number;
}

/** Repairs nothing: the database keeps its own integrity, and backups have what it lost. */
export async function verifyLog(
  database: Database,
  { p, path }: PgPart,
  { onProgress, signal }: VerifyOptions,
): Promise<VerifyReport> {
  const problems: Problem[] = [];
  const note = (what: string): void => {
    const remedy = "Restore the database from a backup.";
    problems.push({ severity: "damage", path: `${database.location.shown} ${path}`, what, remedy, repaired: false });
  };
  const [log] = await database.query<{ head: number; lines: number; written: number; events: number | null }>(
    `select head, lines, (select count(*) from hf_line l where l.p = $1 and l.n <= hf_log.lines) as written,
       (select sum(events)::bigint from hf_line l where l.p = $1 and l.n <= hf_log.lines) as events
     from hf_log where p = $1`,
    [p],
  );
  const head = log?.head ?? 0;
  if (log === undefined) note("its head is missing");
  else if (log.written !== log.lines || (log.events ?? 0) !== head)
    note(
      `it has ${log.written} lines with ${log.events ?? 0} events, and its head says ${log.lines} lines and ${head} events`,
    );
  for (let after = 0; after < head; after += positionsAtOnce) {
    signal?.throwIfAborted();
    const upTo = Math.min(head, after + positionsAtOnce);
    const [found] = await database.query<Range & Record<string, unknown>>(rangeStatement, [p, after, upTo]);
    const { events = 0, first = null, last = null, untagged = 0, strays = 0 } = found ?? {};
    if (events !== upTo - after || first !== after + 1 || last !== upTo)
      note(`of the positions ${after + 1} to ${upTo}, ${events} have an event`);
    if (untagged > 0) note(`${untagged} tags of the events ${after + 1} to ${upTo} are missing in the index of tags`);
    if (strays > 0) note(`the index of tags has ${strays} tags that the events ${after + 1} to ${upTo} have not`);
    onProgress?.(upTo, head);
  }
  return { ok: problems.length === 0, checked: head, problems };
}

/** Counts the events of a range, and compares the tags of each with its rows in the index of tags. */
const rangeStatement = `
  with e as (
    select pos, cardinality(tags) + coalesce(cardinality(more), 0) as tags from hf_event
      where p = $1 and pos > $2 and pos <= $3),
  t as (select pos, count(*) as tags from hf_tag where p = $1 and pos in (select pos from e) group by pos)
  select count(e.pos) as events, min(e.pos) as first, max(e.pos) as last,
    coalesce(sum(greatest(0, e.tags - coalesce(t.tags, 0))), 0)::bigint as untagged,
    coalesce(sum(greatest(0, coalesce(t.tags, 0) - e.tags)), 0)::bigint as strays
  from e left join t on t.pos = e.pos`;
