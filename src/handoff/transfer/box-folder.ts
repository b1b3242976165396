// FolderBoxEnd: a box in a folder as a side of a copy. Each ticket arrives by one rename into its
// place, after its files and notes are durable.
import { parentOf, removeTree } from "../../durable/publish/directory.ts";
import { moveOnce, putIfAbsent, replace } from "../../durable/publish/publish.ts";
import { findRecord, getRecord } from "../../durable/publish/record-file.ts";
import { stage } from "../../durable/publish/staging.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import { encodeRecord } from "../../format/record.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { writeBody } from "../../part/body.ts";
import { readChunks } from "../../part/read-chunks.ts";
import { cannotCopy } from "../../part/transfer/transfer-end.ts";
import type { Box } from "../box/box.ts";
import { findOwner, keysOf } from "../box/key-file.ts";
import { dayMs, findDayMs, findMinuteMs, laneOf, minuteName } from "../box/layout.ts";
import type { OpenedBox } from "../box/open-box.ts";
import { readPayload } from "../consume/payload-check.ts";
import { noteKind } from "../consume/settle.ts";
import { commitDirectory, committedKind, findCommitted, recordName, type LedgerEntry } from "../ledger/ledger.ts";
import { encodeTicket, ticketKind, type ManifestFile, type Ticket } from "../model/manifest.ts";
import { formatTicketName, inLaneOf, parkedOf, unrankedOf, type TicketName } from "../model/ticket-name.ts";
import { notedClaims } from "../operate/describe.ts";
import { Pause, pauseKind } from "../operate/pause.ts";
import { directoriesOf, lanesOf, ticketsIn, ticketsOf, type FoundTicket } from "../operate/tickets.ts";
import { leaveBox, returnDeadTickets } from "../recover/return-tickets.ts";
import {
  copyReason,
  entryItem,
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
  type RestingState,
  type TicketFacts,
} from "./box-items.ts";
import { judgedDead } from "../../part/transfer/transfer.ts";

/** How many tickets are written at once, so that they share syncs. */
const writesAtOnce = 16;
/** How often a move is tried again because another process removed the empty directory of a minute. */
const triesMax = 10;
const states = ["incoming", "delayed", "processing", "archive", "error"] as const;

interface PlacedTicket {
  readonly found: FoundTicket;
  readonly place: number;
}

export class FolderBoxEnd implements BoxEnd {
  readonly shown: string;
  readonly #box: Box;
  readonly #ownsGround: boolean;

  constructor({ box, ownsGround }: OpenedBox) {
    this.shown = box.layout.directory;
    this.#box = box;
    this.#ownsGround = ownsGround;
  }

  async settle(): Promise<void> {
    const { layout } = this.#box;
    const left = async (): Promise<string[]> => [
      ...(await this.#box.names(layout.processings)),
      ...(await this.#box.names(layout.stagings)),
    ];
    if ((await left()).length > 0) await returnDeadTickets(this.#box);
    for (const holder of await this.#box.names(`${layout.directory}/adopting`))
      if ((await this.#box.names(`${layout.directory}/adopting/${holder}`)).length > 0)
        throw cannotCopy(`what the dead process ${holder} was adopting`, this.shown, "let a process that adopts into this box end it first."); // prettier-ignore
  }

  async total(): Promise<number> {
    let total = 0;
    for (const state of states)
      for (const { directory } of await directoriesOf(this.#box, state))
        total += (await this.#box.names(directory)).length;
    return total;
  }

  async *items(): AsyncGenerator<BoxItem> {
    yield* this.#keys();
    yield* this.#entries();
    const places = new Places();
    for (const state of states)
      for await (const found of ticketsIn(this.#box, state))
        if (!isPlaced(found)) yield await this.#ticket(found, places);
    const parked = await this.#parkedByLane();
    for (const { directory } of await lanesOf(this.#box)) {
      const placed = [...(parked.get(directory) ?? [])];
      for await (const found of ticketsOf(this.#box, { state: "incoming", directory }))
        placed.push({ found, place: found.name.rank ?? 0 });
      placed.sort((a, b) => a.place - b.place);
      for (const { found } of placed) yield await this.#ticket(found, places);
    }
  }

  async pause(): Promise<CopiedPause | undefined> {
    const found = await new Pause(this.#box).find();
    return found && { ...found, host: found.host ?? "" };
  }

  async begin(from: string): Promise<() => Promise<void>> {
    if ((await this.pause()) !== undefined) return async () => undefined;
    await new Pause(this.#box).begin(copyReason(from));
    return () => new Pause(this.#box).end();
  }

  async add(items: readonly BoxItem[], signal: AbortSignal): Promise<void> {
    const inOrder = items.filter((item): item is BoxTicketItem => item.kind === "ticket" && item.isPlaced);
    const others = items.filter((item) => item.kind !== "ticket" || !item.isPlaced);
    await inParallel(others, writesAtOnce, async (item) => {
      if (item.kind === "key") await this.#putKey(item.key, item.ticket);
      else if (item.kind === "entry") await this.#putEntry(item, signal);
      else await this.#putTicket(item, signal);
    });
    for (const item of inOrder) await this.#putTicket(item, signal);
  }

  async finish(from: BoxEnd): Promise<void> {
    const own = await this.pause();
    if (own?.reason !== copyReason(from.shown)) return;
    const pause = await from.pause();
    if (pause === undefined) return await new Pause(this.#box).end();
    const { at = new Date(await this.#box.nowMs()).toISOString(), host, reason } = pause;
    const record = { at, host, ...(reason === undefined ? {} : { reason }) };
    await replace(this.#box.ground.staging, this.#box.layout.pauseRecord, encodeRecord(pauseKind, record));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await leaveBox(this.#box);
    if (this.#ownsGround) await this.#box.ground.close();
  }

  /** Finds the parked tickets that keep a place, by the directory of their lane. */
  async #parkedByLane(): Promise<ReadonlyMap<string, readonly PlacedTicket[]>> {
    const lanes = new Map<string, PlacedTicket[]>();
    const { layout, disk } = this.#box;
    for await (const found of ticketsOf(this.#box, { state: "processing", directory: layout.parked })) {
      if (found.name.second === undefined) continue;
      const { manifest } = await getRecord(disk, ticketKind, found.path);
      const lane = `${layout.lane(laneOf(manifest.group ?? ""))}/incoming`;
      lanes.set(lane, [...(lanes.get(lane) ?? []), { found, place: found.name.second }]);
    }
    return lanes;
  }

  async *#keys(): AsyncGenerator<BoxItem> {
    for await (const path of filesBelow(this.#box, this.#box.layout.keys)) {
      const owner = await findOwner(this.#box, path);
      if (owner !== undefined) yield keyItem(owner.manifest.key, owner);
    }
  }

  async *#entries(): AsyncGenerator<BoxItem> {
    for await (const path of filesBelow(this.#box, this.#box.layout.ledgers)) {
      const entry = await findCommitted(this.#box, path);
      if (entry !== undefined)
        yield entryItem(entry.committed, ({ name, size }) =>
          readChunks(this.#box.disk, `${entry.directory ?? path}/outputs/${name}`, { size }),
        );
    }
  }

  async #ticket(found: FoundTicket, places: Places): Promise<BoxTicketItem> {
    const { name, path } = found;
    const ticket = await getRecord(this.#box.disk, ticketKind, path);
    if (ticket.manifest.id !== name.id)
      throw holdfastError("CORRUPT", `${path} is a copy of ticket ${ticket.manifest.id}. Move it away.`, { path });
    const entry = await findCommitted(this.#box, this.#box.layout.ledger(ticket.manifest.key, name.replays));
    const facts = await this.#factsOf(found, ticket, entry);
    const place = facts.isPlaced ? places.next(ticket.manifest.group) : undefined;
    return ticketItem(facts, place, (file) => readPayload(this.#box, ticket, file));
  }

  async #factsOf(
    { name, path, state }: FoundTicket,
    { manifest, isKeyed, inline }: Ticket,
    entry: LedgerEntry | undefined,
  ): Promise<TicketFacts> {
    const notes = await this.#notesOf(name);
    const { claims, forgiven, replays, isDuplicate, rank, second } = name;
    const isParked = parentOf(path) === this.#box.layout.parked;
    const common = { ticket: { manifest, isKeyed }, claims, forgiven, replays, isDuplicate, notes, isInline: inline !== undefined }; // prettier-ignore
    const enteredMs = manifest.createdAt.getTime();
    const doneMs = entry?.committed.id === name.id ? Date.parse(entry.committed.at) : undefined;
    if (state === "archive" || state === "error") {
      const failedMs = Date.parse(notes.at(-1)?.at ?? "");
      const settledMs = withinDay(parentOf(path), state === "archive" ? doneMs : failedMs);
      return { ...common, state, isPlaced: false, enteredMs, settledMs };
    }
    if (state === "processing" && !isParked)
      throw cannotCopy(`ticket ${name.id}`, this.shown, "a process works on it.");
    if (doneMs !== undefined) {
      // Its worker died after the commit: only the move to the archive is missing.
      if ((entry?.committed.sent.length ?? 0) > 0)
        throw cannotCopy(`ticket ${name.id}`, this.shown, "its commit sends tickets, and its worker died before all of them were published. Let a worker complete it first."); // prettier-ignore
      return { ...common, state: "archive", isPlaced: false, enteredMs, settledMs: doneMs };
    }
    if (isParked) return { ...common, state: "parked", isPlaced: second !== undefined, dueMs: rank, enteredMs };
    if (state === "delayed") return { ...common, state, isPlaced: false, dueMs: rank, enteredMs };
    const minuteMs = findMinuteMs(parentOf(path).slice(-10)) ?? enteredMs;
    return { ...common, state: "incoming", isPlaced: rank !== undefined, dueMs: second, enteredMs: rank === undefined ? minuteMs : enteredMs }; // prettier-ignore
  }

  async #notesOf(name: TicketName): Promise<CopiedNote[]> {
    const notes: CopiedNote[] = [];
    for (const claims of await notedClaims(this.#box, name)) {
      const note = await findRecord(this.#box.disk, noteKind, this.#box.layout.note(name.id, String(claims)));
      if (note !== undefined) notes.push({ claims, ...note });
    }
    return notes;
  }

  async #putKey(key: string, ticket: Ticket): Promise<void> {
    const session = await this.#box.ground.session();
    await keysOf(this.#box).put(session, this.#box.layout.key(key), ticket);
  }

  async #putEntry({ committed, open }: EntryItem, signal: AbortSignal): Promise<void> {
    const { key, replays, id, outputs } = committed;
    const { layout, disk, ground } = this.#box;
    const path = layout.ledger(key, replays);
    const record = encodeRecord(committedKind, committed);
    if (outputs.length === 0) {
      await this.#box.within(parentOf(path), () => putIfAbsent(ground.staging, path, record, { isPermanent: true }));
      return;
    }
    const staged = `${await this.#box.staging(await ground.session())}/copy-${this.#box.newId()}`;
    await makeUniqueDirectory(disk, staged);
    await makeUniqueDirectory(disk, `${staged}/outputs`);
    for (const output of outputs) await this.#writeFile(id, `${staged}/outputs/${output.name}`, output, open(output), signal); // prettier-ignore
    await stage(ground.staging, record, { sync: true, path: `${staged}/${recordName}` });
    await this.#box.sync(`${staged}/outputs`, staged);
    await commitDirectory(this.#box, staged, path, committed);
  }

  async #putTicket(item: BoxTicketItem, signal: AbortSignal): Promise<void> {
    const { ticket, isInline, notes, open } = item;
    const { id, files } = ticket.manifest;
    const { layout, ground, disk } = this.#box;
    let inline: Record<string, string> | undefined;
    if (isInline) {
      inline = {};
      for (const file of files) inline[file.name] = (await bytesOf(id, file, open(file))).toString("base64");
    } else {
      const directory = layout.payload(id);
      // An interrupted copy may have left a part of it.
      await removeTree(disk, directory);
      await this.#box.ensure(parentOf(directory));
      await makeUniqueDirectory(disk, directory);
      for (const file of files) await this.#writeFile(id, `${directory}/${file.name}`, file, open(file), signal);
      await this.#box.sync(directory, parentOf(directory));
    }
    for (const { claims, ...note } of notes) {
      const path = layout.note(id, String(claims));
      await this.#box.within(parentOf(path), () =>
        putIfAbsent(ground.staging, path, encodeRecord(noteKind, note), { isPermanent: true }),
      );
    }
    const bytes = encodeTicket({ ...ticket, ...(inline === undefined ? {} : { inline }) });
    await this.#place(await stage(ground.staging, bytes, { sync: true }), item);
  }

  async #place(
    staged: string,
    {
      ticket,
      state,
      claims,
      forgiven,
      replays,
      isDuplicate,
      isPlaced,
      dueMs = 0,
      enteredMs,
      settledMs = 0,
    }: BoxTicketItem,
  ): Promise<void> {
    // prettier-ignore
    const { layout } = this.#box;
    const { id, group, priority } = ticket.manifest;
    const plain: TicketName = { id, claims, forgiven, replays, isDuplicate };
    const due = Math.ceil(dueMs);
    const lane = laneOf(group ?? "");
    const name = isPlaced ? inLaneOf(plain, await this.#box.nextInLane(lane)) : plain;
    const parents: Readonly<Record<RestingState, readonly [directory: string, name: TicketName]>> = {
      incoming: isPlaced
        ? [`${layout.lane(lane)}/incoming`, inLaneOf(plain, name.rank ?? 0, due === 0 ? undefined : due)]
        : [`${layout.incoming(priority)}/${minuteName(enteredMs)}`, plain],
      delayed: [`${layout.delayed}/${minuteName(due)}`, { ...plain, rank: due }],
      parked: [layout.parked, parkedOf(name, due)],
      archive: [layout.archive(settledMs), unrankedOf(name)],
      error: [layout.error(settledMs), unrankedOf(name)],
    };
    const [directory, text] = parents[state];
    for (let tries = 1; ; tries++)
      try {
        await this.#box.ensure(directory, 0);
        if (await moveOnce(this.#box.disk, staged, `${directory}/${formatTicketName(text)}`)) break;
        throw judgedDead(this.shown);
      } catch (error) {
        // A consumer removes the directory of a past minute while it is empty.
        if (!hasErrno(error, "ENOENT") || tries >= triesMax) throw error;
      }
    await this.#box.syncNamed(directory);
  }

  async #writeFile(
    id: string,
    path: string,
    { name, size, sha256 }: Pick<ManifestFile, "name" | "size" | "sha256">,
    bytes: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    const written = await writeBody(this.#box.disk, path, bytes, { signal });
    if (written.size !== size || written.sha256 !== sha256) throw mismatch(id, name, "its bytes are others");
  }
}

/** Small files are in memory whole. */
export async function bytesOf(id: string, file: ManifestFile, bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  const all = Buffer.concat(chunks);
  if (all.length !== file.size) throw mismatch(id, file.name, `it has ${all.length} bytes instead of ${file.size}`);
  return all;
}

function isPlaced({ name, state, path }: FoundTicket): boolean {
  return (state === "incoming" && name.rank !== undefined) || (path.includes("/parked/") && name.second !== undefined);
}

/** Yields the files, and entries that are directories, below directories of shards. */
async function* filesBelow(box: Box, parent: string): AsyncGenerator<string> {
  for (const shard of (await box.names(parent)).sort())
    for (const name of (await box.names(`${parent}/${shard}`)).sort())
      if (/^[0-9a-f]{64}$/.test(name)) yield `${parent}/${shard}/${name}`;
}

/** The time of a ticket that ended on the day of this directory; without a time, the end of that day. */
function withinDay(directory: string, atMs: number | undefined): number {
  const startMs = findDayMs(directory.slice(-8)) ?? 0;
  const endMs = startMs + dayMs - 1;
  return atMs === undefined || Number.isNaN(atMs) ? endMs : Math.min(Math.max(atMs, startMs), endMs);
}
