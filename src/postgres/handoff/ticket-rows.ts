// The rows of tickets, and their conversion for users.
import type { HolderInfo } from "../../common.ts";
import { messageOf } from "../../errors.ts";
import { idTimeMs } from "../../format/id.ts";
import type { AttemptNote, OutputFile, TicketInfo, TicketState } from "../../handoff/model/handoff.ts";
import { ticketKind, type Manifest } from "../../handoff/model/manifest.ts";
import { keyOf, unescaped } from "../connection/text.ts";
import type { PgBox } from "./pg-box.ts";

/** The values of the column `state`. */
export type StateLetter = "i" | "d" | "p" | "k" | "a" | "e";

const states: Readonly<Record<StateLetter, TicketState>> = {
  i: "incoming",
  d: "delayed",
  p: "processing",
  k: "processing",
  a: "archive",
  e: "error",
};

/** The columns of a manifest. */
export interface ManifestRow {
  readonly id: string;
  readonly priority: number;
  readonly keyed: boolean;
  readonly created_ms: number;
  readonly not_before_ms: number | null;
  readonly expires_ms: number | null;
  readonly manifest: unknown;
}

/** A claimed ticket. */
export interface ClaimRow extends ManifestRow {
  readonly serial: number;
  readonly claims: number;
  readonly forgiven: number;
  readonly replays: number;
  readonly inline: Buffer | null;
  /** True if its key was committed before. */
  readonly is_done: boolean;
}

export interface TicketRow extends ManifestRow {
  readonly state: StateLetter;
  readonly claims: number;
  readonly forgiven: number;
  readonly duplicate: boolean;
  readonly holder: string | null;
  readonly progress: unknown;
  readonly result: unknown;
  readonly outputs: readonly OutputFile[] | null;
  /** Marks the start of the next page of a list. */
  readonly place: number | null;
  readonly grp: string | null;
  readonly at: string;
}

export const manifestColumns = `t.id, t.priority, t.keyed, t.manifest, (extract(epoch from t.created) * 1000)::float8 as created_ms,
  (extract(epoch from t.not_before) * 1000)::float8 as not_before_ms, (extract(epoch from t.expires) * 1000)::float8 as expires_ms`;

export const claimColumns: string = `${manifestColumns}, t.serial, t.claims, t.forgiven, t.replays, t.inline, false as is_done`;

/** Columns of `hf_ticket t left join hf_done d`: see `doneJoin`. */
export const ticketColumns: string = `${manifestColumns}, t.state, t.claims, t.forgiven, t.duplicate, t.holder, t.progress,
  d.result, d.outputs, t.place, t.grp,
  (case when t.state in ('d', 'k') then t.due when t.state in ('a', 'e') then t.settled else t.entered end)::text as at`;

export const doneJoin: string = "left join hf_done d on d.p = t.p and d.key = t.key and d.replays = t.replays";

/** Throws a TypeError for a row that another program damaged. */
export function manifestOf(row: ManifestRow): Manifest {
  const { id, priority, keyed, created_ms, not_before_ms, expires_ms, manifest } = row;
  const dates = { createdAt: textOf(created_ms), notBefore: textOf(not_before_ms), expiresAt: textOf(expires_ms) };
  return ticketKind.decode({ ...(manifest as object), id, priority, isKeyed: keyed, ...dates }).manifest;
}

export function attemptOf({ claims, forgiven }: Pick<TicketRow, "claims" | "forgiven">): number {
  return claims - forgiven;
}

/** Finds a ticket by its id. */
export async function findRow({ database, p }: PgBox, id: string): Promise<TicketRow | undefined> {
  const text = `select ${ticketColumns} from hf_ticket t ${doneJoin} where t.p = $1 and t.id = $2`;
  return (await database.query<TicketRow & Record<string, unknown>>(text, [p, keyOf(id)]))[0];
}

/** Returns the id of the ticket with this key, or the key itself if it is the id of one. */
export async function idOfKey({ database, p }: PgBox, key: string): Promise<string> {
  const text = "select id from hf_key where p = $1 and key = $2";
  return (await database.query<{ id: string }>(text, [p, keyOf(key)]))[0]?.id ?? key;
}

/** Describes tickets, in the order of the rows. */
export async function describeRows(box: PgBox, rows: readonly TicketRow[]): Promise<TicketInfo[]> {
  const notes = await findNotes(box, rows);
  const holders = new Map<string, HolderInfo | undefined>();
  for (const { state, holder } of rows)
    if (state === "p" && holder !== null && !holders.has(holder))
      holders.set(holder, await box.ground.findHolder(holder));
  return rows.map((row) => describe(row, notes.get(row.id) ?? [], holders.get(row.holder ?? "")));
}

function describe(row: TicketRow, history: readonly AttemptNote[], found: HolderInfo | undefined): TicketInfo {
  const { state, progress, result, outputs, duplicate } = row;
  const holder = state === "p" ? found : undefined;
  const common = {
    state: states[state],
    attempt: attemptOf(row),
    ...(holder === undefined ? {} : { holder }),
    ...(state !== "p" || progress === null ? {} : { progress: (progress as { note: unknown }).note }),
    history,
    ...(result === null ? {} : { result: (result as { result: unknown }).result }),
    outputs: outputs ?? [],
    duplicate,
  };
  try {
    return { ...manifestOf(row), ...common };
  } catch (error) {
    const { id, priority } = row;
    const producer = { host: "", pid: 0 };
    const unknown = { id, key: "", files: [], createdAt: new Date(idTimeMs(id)), producer, priority };
    return { ...unknown, ...common, damaged: messageOf(error) };
  }
}

/** How many of the last notes of each ticket are returned. */
const notesMax = 100;

async function findNotes(
  { database, p }: PgBox,
  rows: readonly TicketRow[],
): Promise<ReadonlyMap<string, readonly AttemptNote[]>> {
  const ids = rows.filter(({ claims }) => claims > 0).map(({ id }) => id);
  const found = new Map<string, AttemptNote[]>();
  if (ids.length === 0) return found;
  const notes = await database.query<{ id: string; attempt: number; at_ms: number; outcome: string; reason: string }>(
    `select n.id, n.attempt, (extract(epoch from n.at) * 1000)::float8 as at_ms, n.outcome, n.reason
       from unnest($2::text[]) u(id), lateral (
         select * from hf_note n where n.p = $1 and n.id = u.id order by n.claims desc limit ${notesMax}) n
       order by n.claims`,
    [p, ids],
  );
  for (const { id, attempt, at_ms, outcome, reason } of notes) {
    const note = {
      attempt,
      at: new Date(at_ms),
      outcome: outcome as AttemptNote["outcome"],
      reason: unescaped(reason),
    };
    const list = found.get(id);
    if (list === undefined) found.set(id, [note]);
    else list.push(note);
  }
  return found;
}

function textOf(ms: number | null): string | undefined {
  return ms === null ? undefined : new Date(Math.round(ms)).toISOString();
}
