// PgBoxEnd: a box in a database as a side of a copy. Several tickets arrive in one transaction,
// after their large files are committed.
import { makeId } from "../../format/id.ts";
import { bytesOf } from "../../handoff/transfer/box-folder.ts";
import {
  copyReason,
  entryItem,
  goneTicket,
  keyItem,
  mismatch,
  Places,
  ticketItem,
  type BoxEnd,
  type BoxItem,
  type BoxTicketItem,
  type CopiedNote,
  type CopiedPause,
  type EntryItem,
  type KeyItem,
  type RestingState,
} from "../../handoff/transfer/box-items.ts";
import type { Committed } from "../../handoff/ledger/ledger.ts";
import type { AttemptRecord } from "../../handoff/consume/settle.ts";
import { ticketBody, type ManifestFile } from "../../handoff/model/manifest.ts";
import { cannotCopy } from "../../part/transfer/transfer-end.ts";
import type { Send } from "../connection/database.ts";
import { escaped, keyOf, unescaped } from "../connection/text.ts";
import { untilAnswered } from "../connection/batches.ts";
import { readPieces, StagedPieces, judgedDead } from "../handoff/payload-rows.ts";
import type { PgBox } from "../handoff/pg-box.ts";
import { readFile } from "../handoff/settler.ts";
import { manifestColumns, manifestOf, type ManifestRow, type StateLetter } from "../handoff/ticket-rows.ts";

const rowsAtOnce = 256;

const letters: Readonly<Record<RestingState, StateLetter>> = {
  incoming: "i",
  delayed: "d",
  parked: "k",
  archive: "a",
  error: "e",
};
const states = new Map(Object.entries(letters).map(([state, letter]) => [letter, state as RestingState]));

interface Row extends ManifestRow, Record<string, unknown> {
  readonly state: StateLetter;
  readonly claims: number;
  readonly forgiven: number;
  readonly replays: number;
  readonly duplicate: boolean;
  readonly inline: Buffer | null;
  readonly grp: string | null;
  readonly place: number | null;
  readonly is_placed: boolean;
  readonly due_ms: number | null;
  readonly entered_ms: number;
  readonly settled_ms: number | null;
}

interface DoneRow extends Record<string, unknown> {
  readonly key: string;
  readonly replays: number;
  readonly id: string;
  readonly claims: number;
  readonly holder: string;
  readonly at_ms: number;
  readonly result: { readonly result: unknown } | null;
  readonly outputs: Committed["outputs"];
  readonly owner: string | null;
  readonly full_key: string | null;
}

const msOf = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`;
const isPlaced = "(t.place is not null and t.state in ('i', 'p', 'k'))";
const ticketColumns = `${manifestColumns}, t.state, t.claims, t.forgiven, t.replays, t.duplicate, t.inline, t.grp, t.place,
  ${isPlaced} as is_placed, ${msOf("t.due")} as due_ms, ${msOf("t.entered")} as entered_ms, ${msOf("t.settled")} as settled_ms`;

export class PgBoxEnd implements BoxEnd {
  readonly shown: string;
  readonly #box: PgBox;
  readonly #close: () => Promise<void>;

  constructor(box: PgBox, close: () => Promise<void>) {
    this.shown = box.directory;
    this.#box = box;
    this.#close = close;
  }

  async settle(): Promise<void> {
    const { ground, database, p } = this.#box;
    await ground.sweep();
    const [row] = await database.query<{ id: string }>("select id from hf_ticket where p = $1 and state = 'p' limit 1", [p]); // prettier-ignore
    if (row !== undefined) await database.query("select hf_reap_1($1, $2)", [p, ground.part]);
  }

  async total(): Promise<number> {
    const { database, p } = this.#box;
    const [row] = await database.query<{ total: number }>("select count(*) as total from hf_ticket where p = $1", [p]);
    return row?.total ?? 0;
  }

  async *items(): AsyncGenerator<BoxItem> {
    yield* this.#keys();
    yield* this.#entries();
    const places = new Places();
    const others = `select ${ticketColumns} from hf_ticket t where t.p = $1 and not ${isPlaced} and t.id > $2 order by t.id limit ${rowsAtOnce}`; // prettier-ignore
    for (let after = ""; ;) {
      const rows = await this.#box.database.query<Row>(others, [this.#box.p, after]);
      yield* await this.#tickets(rows, places);
      if (rows.length < rowsAtOnce) break;
      after = rows.at(-1)?.id ?? "";
    }
    const placed = `select ${ticketColumns} from hf_ticket t where t.p = $1 and ${isPlaced} and (t.grp, t.place) > ($2, $3) order by t.grp, t.place limit ${rowsAtOnce}`; // prettier-ignore
    for (let [group, place] = ["", 0]; ;) {
      const rows = await this.#box.database.query<Row>(placed, [this.#box.p, group, place]);
      yield* await this.#tickets(rows, places);
      if (rows.length < rowsAtOnce) break;
      [group, place] = [rows.at(-1)?.grp ?? "", rows.at(-1)?.place ?? 0];
    }
  }

  async pause(): Promise<CopiedPause | undefined> {
    const { database, p } = this.#box;
    const [row] = await database.query<{ paused: CopiedPause | null }>("select paused from hf_box where p = $1", [p]);
    return row?.paused ?? undefined;
  }

  async begin(from: string): Promise<() => Promise<void>> {
    if ((await this.pause()) !== undefined) return async () => undefined;
    await this.#setPause({ host: this.#box.ground.ports.host.name, reason: copyReason(from) });
    return () => this.#setPause(undefined);
  }

  async add(items: readonly BoxItem[], signal: AbortSignal): Promise<void> {
    const keys = items.filter((item) => item.kind === "key");
    const entries = items.filter((item) => item.kind === "entry");
    const tickets = items.filter((item) => item.kind === "ticket");
    const owners = new Map<EntryItem, string>();
    const inlines = new Map<BoxTicketItem, Buffer>();
    for (const entry of entries)
      if (entry.committed.outputs.length > 0) owners.set(entry, await this.#stageOutputs(entry, signal));
    for (const ticket of tickets) {
      const { files } = ticket.ticket.manifest;
      if (ticket.isInline)
        inlines.set(ticket, Buffer.concat(await Promise.all(files.map((file) => bytesOf(ticket.ticket.manifest.id, file, ticket.open(file)))))); // prettier-ignore
      else await this.#stage(ticket.ticket.manifest.id, ticket.ticket.manifest.id, files, ticket.open, signal);
    }
    const { database } = this.#box;
    await untilAnswered(
      database,
      tickets.map(({ id }) => id),
      () =>
        // prettier-ignore
        database.transaction(async (send) => {
        await this.#insertKeys(send, keys);
        await this.#insertEntries(send, entries, owners);
        await this.#insertTickets(send, tickets, inlines);
      }),
    );
  }

  async finish(from: BoxEnd): Promise<void> {
    if ((await this.pause())?.reason === copyReason(from.shown)) await this.#setPause(await from.pause());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  async #setPause(pause: CopiedPause | undefined): Promise<void> {
    const { database, p } = this.#box;
    await database.query("update hf_box set paused = $2 where p = $1", [p, pause === undefined ? null : JSON.stringify(pause)]); // prettier-ignore
  }

  async *#keys(): AsyncGenerator<BoxItem> {
    const text = `select k.key, k.id as owner, t.id is not null as has_ticket, ${manifestColumns} from hf_key k
      left join hf_ticket t on t.p = k.p and t.id = k.id where k.p = $1 and k.key > $2 order by k.key limit ${rowsAtOnce}`;
    type KeyRow = ManifestRow & Record<string, unknown> & { key: string; owner: string; has_ticket: boolean };
    for (let after = ""; ;) {
      const rows = await this.#box.database.query<KeyRow>(text, [this.#box.p, after]);
      for (const row of rows) {
        const manifest = row.has_ticket ? manifestOf(row) : undefined;
        const key = this.#wholeKey(row.key, manifest?.key);
        yield keyItem(key, manifest === undefined ? goneTicket(row.owner, key) : { isKeyed: row.keyed, manifest });
      }
      if (rows.length < rowsAtOnce) return;
      after = rows.at(-1)?.key ?? "";
    }
  }

  async *#entries(): AsyncGenerator<BoxItem> {
    const text = `select d.*, ${msOf("d.at")} as at_ms, t.manifest ->> 'key' as full_key from hf_done d
      left join hf_ticket t on t.p = d.p and t.id = d.id
      where d.p = $1 and (d.key, d.replays) > ($2, $3) order by d.key, d.replays limit ${rowsAtOnce}`;
    for (let [key, replays] = ["", -1]; ;) {
      const rows = await this.#box.database.query<DoneRow>(text, [this.#box.p, key, replays]);
      for (const row of rows) {
        const { id, claims, holder, result, outputs, owner, at_ms } = row;
        const committed: Committed = {
          key: this.#wholeKey(row.key, row.full_key ?? undefined),
          ...{ id, claims, replays: row.replays, holder, at: new Date(Math.round(at_ms)).toISOString() },
          ...(result === null ? {} : { result: result.result }),
          outputs: outputs.map(({ name, size, sha256 }) => ({ name, size, sha256 })),
          sent: [],
        };
        yield entryItem(committed, (output) => readPieces(this.#box, owner ?? "", output));
      }
      if (rows.length < rowsAtOnce) return;
      [key, replays] = [rows.at(-1)?.key ?? "", rows.at(-1)?.replays ?? 0];
    }
  }

  /** A long key is only a hash in its row. Its ticket has the whole of it. */
  #wholeKey(key: string, found: string | undefined): string {
    if (!key.startsWith("\\~")) return unescaped(key);
    if (found !== undefined && keyOf(found) === key) return found;
    throw cannotCopy(`the key with the hash ${key.slice(2)}`, this.shown, "it is longer than 800 bytes, and its ticket, which has the whole key, was removed."); // prettier-ignore
  }

  async #tickets(rows: readonly Row[], places: Places): Promise<BoxTicketItem[]> {
    const notes = await this.#notesOf(rows);
    return rows.map((row) => {
      const { id, keyed, claims, forgiven, replays, duplicate, inline, due_ms, entered_ms, settled_ms, is_placed } = row; // prettier-ignore
      const state = states.get(row.state);
      if (state === undefined) throw cannotCopy(`ticket ${id}`, this.shown, "a process works on it.");
      const manifest = manifestOf(row);
      const facts = {
        state,
        ticket: { manifest, isKeyed: keyed },
        ...{ claims, forgiven, replays, isDuplicate: duplicate, isInline: inline !== null, isPlaced: is_placed },
        dueMs: due_ms ?? undefined,
        enteredMs: entered_ms,
        settledMs: settled_ms ?? undefined,
        notes: notes.get(id) ?? [],
      };
      const place = is_placed ? places.next(manifest.group) : undefined;
      return ticketItem(facts, place, (file) => readFile(this.#box, { row: { id, inline }, manifest }, file));
    });
  }

  async #notesOf(rows: readonly Row[]): Promise<ReadonlyMap<string, readonly CopiedNote[]>> {
    const ids = rows.filter(({ claims }) => claims > 0).map(({ id }) => id);
    const found = new Map<string, CopiedNote[]>();
    if (ids.length === 0) return found;
    type NoteRow = { id: string; claims: number; attempt: number; at_ms: number; outcome: AttemptRecord["outcome"]; reason: string; holder: string }; // prettier-ignore
    const notes = await this.#box.database.query<NoteRow>(
      `select n.id, n.claims, n.attempt, ${msOf("n.at")} as at_ms, n.outcome, n.reason, n.holder from hf_note n
         where n.p = $1 and n.id = any ($2) order by n.id, n.claims`,
      [this.#box.p, ids],
    );
    for (const { id, at_ms, reason, ...note } of notes) {
      const list = found.get(id) ?? [];
      found.set(id, list);
      list.push({ ...note, at: new Date(Math.round(at_ms)).toISOString(), reason: unescaped(reason) });
    }
    return found;
  }

  async #stageOutputs({ committed, open }: EntryItem, signal: AbortSignal): Promise<string> {
    const { clock, random } = this.#box.ground.ports;
    const owner = makeId(clock.wallMs(), random.bytes(16));
    await this.#stage(committed.id, owner, committed.outputs, open, signal);
    return owner;
  }

  async #stage(
    id: string,
    owner: string,
    files: readonly Pick<ManifestFile, "name" | "size" | "sha256">[],
    open: (file: ManifestFile) => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    const pieces = new StagedPieces(this.#box, owner);
    for (const file of files) {
      const written = await pieces.write(file.name, open(file), signal);
      if (written.size === file.size && written.sha256 === file.sha256) continue;
      await pieces.discard();
      throw mismatch(id, file.name, "its bytes are others");
    }
  }

  async #insertKeys(send: Send, items: readonly KeyItem[]): Promise<void> {
    await send(
      "insert into hf_key (p, key, id) select $1::int, * from unnest($2::text[], $3::text[]) on conflict do nothing",
      [this.#box.p, items.map(({ key }) => keyOf(key)), items.map(({ ticket }) => ticket.manifest.id)],
    );
  }

  async #insertEntries(send: Send, items: readonly EntryItem[], owners: ReadonlyMap<EntryItem, string>): Promise<void> {
    const column = (of: (committed: Committed, item: EntryItem) => unknown): unknown[] =>
      items.map((item) => of(item.committed, item) ?? null);
    const rows = await send<{ owner: string | null }>(
      `insert into hf_done (p, key, replays, id, claims, holder, serial, at, result, outputs, owner)
         select $1::int, u.key, u.replays, u.id, u.claims, u.holder, 0, u.at, u.result::json, u.outputs::json, u.owner
         from unnest($2::text[], $3::int[], $4::text[], $5::int[], $6::text[], $7::timestamptz[], $8::text[], $9::text[], $10::text[])
           u(key, replays, id, claims, holder, at, result, outputs, owner)
         on conflict do nothing returning owner`,
      [
        this.#box.p,
        column(({ key }) => keyOf(key)),
        column(({ replays }) => replays),
        column(({ id }) => id),
        column(({ claims }) => claims),
        column(({ holder }) => holder),
        column(({ at }) => at),
        column((committed) => ("result" in committed ? JSON.stringify({ result: committed.result }) : undefined)),
        column(({ outputs }) => JSON.stringify(outputs)),
        column((_, item) => owners.get(item)),
      ],
    );
    await this.#unstage(send, rows.map(({ owner }) => owner).filter((owner) => owner !== null)); // prettier-ignore
  }

  async #insertTickets(
    send: Send,
    items: readonly BoxTicketItem[],
    inlines: ReadonlyMap<BoxTicketItem, Buffer>,
  ): Promise<void> {
    const column = (of: (item: BoxTicketItem) => unknown): unknown[] => items.map((item) => of(item) ?? null);
    const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);
    const rows = await send<{ id: string }>(
      `insert into hf_ticket (p, id, state, priority, grp, entered, due, created, not_before, expires, key, keyed,
           claims, forgiven, replays, duplicate, bytes, manifest, inline, settled)
         select $1::int, u.id, u.state::"char", u.priority, u.grp, to_timestamp(u.entered), to_timestamp(u.due), u.created,
           u.not_before, u.expires, u.key, u.keyed, u.claims, u.forgiven, u.replays, u.duplicate, u.bytes, u.manifest::json,
           u.inline, to_timestamp(u.settled)
         from unnest($2::text[], $3::text[], $4::int[], $5::text[], $6::float8[], $7::float8[], $8::timestamptz[],
             $9::timestamptz[], $10::timestamptz[], $11::text[], $12::bool[], $13::int[], $14::int[], $15::int[],
             $16::bool[], $17::bigint[], $18::text[], $19::bytea[], $20::float8[])
           u(id, state, priority, grp, entered, due, created, not_before, expires, key, keyed, claims, forgiven, replays,
             duplicate, bytes, manifest, inline, settled)
         on conflict do nothing returning id`,
      [
        this.#box.p,
        column(({ ticket }) => ticket.manifest.id),
        column(({ state }) => letters[state]),
        column(({ ticket }) => ticket.manifest.priority),
        column(({ ticket: { manifest } }) => (manifest.group === undefined ? undefined : keyOf(manifest.group))),
        column(({ enteredMs }) => seconds(enteredMs)),
        column(({ dueMs }) => seconds(dueMs)),
        column(({ ticket }) => ticket.manifest.createdAt.toISOString()),
        column(({ ticket }) => ticket.manifest.notBefore?.toISOString()),
        column(({ ticket }) => ticket.manifest.expiresAt?.toISOString()),
        column(({ ticket }) => keyOf(ticket.manifest.key)),
        column(({ ticket }) => ticket.isKeyed),
        column(({ claims }) => claims),
        column(({ forgiven }) => forgiven),
        column(({ replays }) => replays),
        column(({ isDuplicate }) => isDuplicate),
        column(({ ticket }) => ticket.manifest.files.reduce((sum, { size }) => sum + size, 0)),
        column(manifestJson),
        column((item) => inlines.get(item)),
        column(({ settledMs }) => seconds(settledMs)),
      ],
    );
    const made = new Set(rows.map(({ id }) => id));
    const fresh = items.filter(({ ticket }) => made.has(ticket.manifest.id));
    await this.#unstage(send, fresh.filter(({ isInline }) => !isInline).map(({ ticket }) => ticket.manifest.id)); // prettier-ignore
    const notes = fresh.flatMap((item) => item.notes.map((note) => ({ ...note, id: item.ticket.manifest.id })));
    await send(
      `insert into hf_note (p, id, claims, attempt, at, outcome, reason, holder)
         select $1::int, * from unnest($2::text[], $3::int[], $4::int[], $5::timestamptz[], $6::text[], $7::text[], $8::text[])
         on conflict do nothing`,
      [
        this.#box.p,
        notes.map(({ id }) => id),
        notes.map(({ claims }) => claims),
        notes.map(({ attempt }) => attempt),
        notes.map(({ at }) => at),
        notes.map(({ outcome }) => outcome),
        notes.map(({ reason }) => escaped(reason)),
        notes.map(({ holder }) => holder),
      ],
    );
    const placed = fresh.filter((item) => item.isPlaced).map(({ ticket }) => ticket.manifest.id);
    if (placed.length > 0) await send("select hf_enter_1($1, $2)", [this.#box.p, placed]);
  }

  /** From here on, the tickets or entries own their pieces. Throws LOCK_LOST if another process removed them. */
  async #unstage(send: Send, owners: readonly string[]): Promise<void> {
    if (owners.length === 0) return;
    const rows = await send("delete from hf_staged where p = $1 and owner = any ($2) returning owner", [this.#box.p, owners]); // prettier-ignore
    if (rows.length < owners.length) throw judgedDead(this.#box);
  }
}

/** The column `manifest`, in which columns of their own are left out. */
function manifestJson({ ticket }: BoxTicketItem): string {
  const { key, files, producer, group, meta } = ticketBody(ticket) as Readonly<Record<string, unknown>>;
  return JSON.stringify({ key, files, producer, group, meta });
}
