// Hand-off boxes in the server of this test run: each opening acts as another process.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { onTestFinished } from "vitest";
import type { AttemptNote, OutputFile } from "../../src/handoff/model/handoff.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { Database } from "../../src/postgres/connection/database.ts";
import { keyOf } from "../../src/postgres/connection/text.ts";
import type { HandoffSite } from "../sites/boxes.ts";
import { openPgStore, serverUrl } from "./stores.ts";

const states: Readonly<Record<string, string>> = {
  i: "incoming",
  d: "delayed",
  p: "processing",
  k: "processing",
  a: "archive",
  e: "error",
};

export interface PgBoxSite extends HandoffSite {
  /** The number of the box. */
  part(): Promise<number>;
  database(): Promise<Database>;
}

export async function makePgBoxes(): Promise<PgBoxSite> {
  const store = randomUUID();
  let opening: Promise<Database> | undefined;
  const open = async (): Promise<Database> => {
    const opened = await Database.open(serverUrl(), nodeClock);
    onTestFinished(() => opened.close());
    return opened;
  };
  const database = async (): Promise<Database> => await (opening ??= open());
  const rows = async <R extends object>(text: string, ...values: unknown[]): Promise<R[]> =>
    (await (await database()).query(text, values)) as R[];
  const part = async (): Promise<number> =>
    (
      await rows<{ p: number }>("select p from hf_part where store = $1 and room = 'handoff' and name = 'box'", store)
    )[0]?.p ?? 0;
  return {
    part,
    database,
    open: async ({ name = "box", leaseMs, ...options } = {}) =>
      await (await openPgStore(store, { leaseMs })).handoff(name, options),
    find: async (id) => {
      const [row] = await rows<{ state: string; attempt: number; result: { result: unknown } | null }>(
        `select t.state, t.claims - t.forgiven as attempt, d.result from hf_ticket t
           left join hf_done d on d.p = t.p and d.key = t.key and d.replays = t.replays where t.p = $1 and t.id = $2`,
        await part(),
        id,
      );
      const notes = await rows<{ attempt: number; outcome: AttemptNote["outcome"]; reason: string; at: string }>(
        "select attempt, outcome, reason, at from hf_note where p = $1 and id = $2 order by claims",
        await part(),
        id,
      );
      return (
        row && {
          state: states[row.state] ?? row.state,
          attempt: row.attempt,
          history: notes.map(({ at, ...note }) => ({ ...note, at: new Date(at) })),
          ...row.result,
        }
      );
    },
    findCommitted: async (key) => {
      const [row] = await rows<{ result: object | null; outputs: OutputFile[]; at_ms: number }>(
        `select result, outputs, (extract(epoch from at) * 1000)::float8 as at_ms from hf_done
           where p = $1 and key = $2 and replays = 0`,
        await part(),
        keyOf(key),
      );
      return row && { committed: { ...row.result, outputs: row.outputs, at: new Date(row.at_ms).toISOString() } };
    },
    stored: async () =>
      (
        await rows<{ name: string }>(
          `select 'ticket ' || id as name from hf_ticket where p = $1
           union all select 'key ' || key from hf_key where p = $1
           union all select 'staged ' || owner from hf_staged where p = $1
           union all select 'piece ' || owner || ' ' || name || ' ' || part from hf_payload where p = $1
           order by name`,
          await part(),
        )
      ).map(({ name }) => name),
    payloads: async () =>
      (
        await rows<{ name: string }>(
          "select distinct owner || '/' || name as name from hf_payload where p = $1",
          await part(),
        )
      ).map(({ name }) => name),
    readAt: (path) => readFile(path, "utf8"),
    spoilPayload: async (id, text) => {
      await rows("update hf_payload set body = $3 where p = $1 and owner = $2", await part(), id, Buffer.from(text));
    },
    declareDead: async ({ id }) => {
      const dead = await rows(
        `update hf_holder h set dead = clock_timestamp() from hf_ticket t
           where t.p = $1 and t.id = $2 and t.state = 'p' and h.id = t.holder returning h.id`,
        await part(),
        id,
      );
      if (dead.length !== 1) throw new Error(`no process has claimed ${id}`);
    },
  };
}
