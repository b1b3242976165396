// Copies a hand-off box: every ticket once, and only what belongs to these tickets.
import type { Box } from "../../handoff/box/box.ts";
import { keyFileKind, ownerOf } from "../../handoff/box/key-file.ts";
import { underScanGate } from "../../handoff/consume/scan-gate.ts";
import { ticketKind, type Ticket } from "../../handoff/model/manifest.ts";
import { findTicketName, formatTicketName, unrankedOf, type TicketName } from "../../handoff/model/ticket-name.ts";
import { decodeRecord } from "../../format/record.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import { makeId } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { readsAtOnce, type Copier } from "../write/copier.ts";
import type { FileEntry } from "../model.ts";

/** On a share no process waits for a scan, so a ticket that moves back is looked for again. */
const roundsOnShare = 3;
const ticketBytesMax = 16 * 1024 * 1024;

interface Found {
  readonly name: TicketName;
  /** Its path below the box. */
  readonly path: string;
}

interface Copied extends Found {
  /** Its record, under the path at which it was read. */
  readonly entry: FileEntry;
  /** Undefined if the record was not read now, or cannot be read. */
  readonly ticket: Ticket | undefined;
}

/** Copies one box, in two steps with those of all other boxes in between. */
export class BoxCopy {
  readonly #copier: Copier;
  readonly #box: Box;
  /** The path of the box in the store. */
  readonly #path: string;
  /** Paths in `archive/` when the backup began. The tickets that these tickets sent are published. */
  readonly #archived = new Set<string>();
  readonly #tickets = new Map<string, Copied>();
  /** The tickets that the last scan met. All others were removed meanwhile. */
  #met = new Set<string>();

  constructor(copier: Copier, box: Box, path: string) {
    this.#copier = copier;
    this.#box = box;
    this.#path = path;
  }

  /** Call it for all boxes before `copy` for any of them. */
  async begin(): Promise<void> {
    for (const { path } of await this.#in("archive", 1)) this.#archived.add(path);
  }

  async copy(): Promise<void> {
    // Reads most of the tickets while workers continue, so that they wait only for the listing.
    await this.#scan();
    await underScanGate(this.#box, async () => {
      this.#met = new Set();
      await this.#scan();
    });
    if (this.#box.disk.volume.kind !== "local") for (let round = 1; round < roundsOnShare; round++) await this.#scan();
    for (const id of this.#tickets.keys()) if (!this.#met.has(id)) this.#tickets.delete(id);
    // The ledger after the tickets: an archived ticket has its entry. The keys after the ledger: one belongs to a
    // ticket, to an entry, or to something that is newer than this copy.
    const committed = await this.#copyLedger();
    await this.#place(committed);
    await this.#copyKeys(committed);
    await this.#copyOwned();
    const { layout } = this.#box;
    await this.#copier.copy(this.#below(layout.pauseRecord.slice(layout.directory.length + 1)));
    for (const lane of await this.#copier.names(this.#below("lanes")))
      await this.#copier.copyChain(this.#box.ground, this.#below(`lanes/${lane}/order`), "lane-order");
    await this.#copier.copy(this.#below("box.json"));
  }

  /** Under the gate a claimed ticket stays claimed, and every other move leads to a directory that is listed later. */
  async #scan(): Promise<void> {
    for (const [room, depth] of [
      ["staging", 1],
      ["processing", 1],
      ["parked", 0],
      ["delayed", 1],
      ["error", 1],
      ["archive", 1],
      ["incoming", 2],
      ["lanes", 2],
      ["processing", 1],
      ["parked", 0],
    ] as const)
      await inParallel(await this.#in(room, depth), readsAtOnce, (found) => this.#take(found));
  }

  /** Returns the tickets in the directories at this depth below one of the box. */
  async #in(room: string, depth: number): Promise<Found[]> {
    let directories = [room];
    for (let level = 0; level < depth; level++) {
      const below: string[] = [];
      for (const directory of directories)
        below.push(...(await this.#names(directory)).map((name) => `${directory}/${name}`));
      directories = below;
    }
    const found: Found[] = [];
    for (const directory of directories)
      for (const text of await this.#names(directory)) {
        const name = findTicketName(text);
        if (name !== undefined) found.push({ name, path: `${directory}/${text}` });
      }
    return found;
  }

  async #take(found: Found): Promise<void> {
    const { id } = found.name;
    this.#met.add(id);
    const known = this.#tickets.get(id);
    const isStaged = found.path.startsWith("staging/");
    if (known !== undefined) {
      // A copy that a scan read earlier stays: the record of a ticket never changes.
      if (!isStaged && !isOlder(found.name, known.name)) this.#tickets.set(id, { ...known, ...found });
      return;
    }
    const { writer } = this.#copier;
    const path = this.#below(found.path);
    if (!(await this.#copier.copy(path, { isFinal: true }))) return;
    const entry = writer.entries.get(path) as FileEntry;
    writer.entries.delete(path);
    const ticket = await this.#read(path);
    // A ticket without its record is still being staged.
    if (isStaged && ticket === undefined) return;
    this.#tickets.set(id, { ...found, entry, ticket });
  }

  async #read(path: string): Promise<Ticket | undefined> {
    try {
      return decodeRecord(ticketKind, await this.#copier.disk.readFile(this.#copier.at(path), ticketBytesMax), path);
    } catch {
      // Gone, or damaged: then it is copied as it is, and `verify` of the copy names it.
      return undefined;
    }
  }

  /** Gives each ticket its place in the copy. Drops those that retention removed meanwhile, with their files. */
  async #place(committed: ReadonlySet<string>): Promise<void> {
    const { ports, writer } = this.#copier;
    // A holder that no restored store has: the next process completes what its tickets sent, and archives them.
    const nobody = makeId(ports.clock.wallMs(), ports.random.bytes(16));
    await inParallel([...this.#tickets.values()], readsAtOnce, async ({ name, path, entry, ticket }) => {
      const payload = this.#below(this.#box.layout.payload(name.id).slice(this.#box.layout.directory.length + 1));
      const files = await this.#copier.names(payload);
      const isFinished = path.startsWith("archive/") || path.startsWith("error/");
      const missing = await this.#copier.copyAll(
        files.map((file) => `${payload}/${file}`),
        { isFinal: true },
      );
      const expected = ticket === undefined || ticket.inline !== undefined ? [] : ticket.manifest.files;
      if (isFinished && (missing.length > 0 || expected.some((file) => !files.includes(file.name)))) {
        writer.drop(payload);
        this.#tickets.delete(name.id);
        return;
      }
      const isNew = path.startsWith("archive/") && !this.#archived.has(path) && !name.isDuplicate;
      const isUnsent = isNew && ticket !== undefined && committed.has(this.#hashOf(ticket, name));
      const to = isUnsent ? `processing/${nobody}/${formatTicketName(unrankedOf(name))}` : path;
      this.#tickets.set(name.id, { name, path: to, entry, ticket });
      writer.add({ ...entry, path: this.#below(to) });
    });
  }

  #hashOf({ manifest: { key } }: Ticket, { replays }: TicketName): string {
    const path = this.#box.layout.ledger(key, replays);
    return path.slice(path.lastIndexOf("/") + 1);
  }

  /** Returns the hashes of the keys that are committed. */
  async #copyLedger(): Promise<Set<string>> {
    const committed = new Set<string>();
    for (const shard of await this.#names("ledger"))
      await inParallel(await this.#names(`ledger/${shard}`), readsAtOnce, async (hash) => {
        const path = this.#below(`ledger/${shard}/${hash}`);
        const isFile = await this.#copier.copyNamed(path, { isFinal: true });
        if (isFile || (await this.#copyTree(path))) committed.add(hash);
      });
    return committed;
  }

  /** An entry with outputs is a directory, which nothing changes. */
  async #copyTree(path: string): Promise<boolean> {
    let isThere = false;
    for (const name of await this.#copier.names(path)) {
      const isFile = await this.#copier.copy(`${path}/${name}`, { isFinal: true });
      isThere = isFile || (await this.#copyTree(`${path}/${name}`)) || isThere;
    }
    return isThere;
  }

  /** A key whose ticket is newer than this copy would make its producer believe that it is published. */
  async #copyKeys(committed: ReadonlySet<string>): Promise<void> {
    for (const shard of await this.#names("keys"))
      await inParallel(await this.#names(`keys/${shard}`), readsAtOnce, async (hash) => {
        const path = this.#below(`keys/${shard}/${hash}`);
        const owner = await this.#ownerOf(path, hash);
        if (owner === undefined || committed.has(hash) || this.#tickets.has(owner))
          await this.#copier.copyNamed(path, { isFinal: true });
      });
  }

  /** Returns undefined for a key that cannot be read, which is copied as it is. */
  async #ownerOf(path: string, hash: string): Promise<string | undefined> {
    try {
      const bytes = await this.#copier.disk.readFile(this.#copier.at(path), ticketBytesMax);
      return ownerOf(this.#box, decodeRecord(keyFileKind, bytes, path), hash)?.manifest.id;
    } catch {
      return undefined;
    }
  }

  /** Copies the notes of the tickets. */
  async #copyOwned(): Promise<void> {
    for (const shard of await this.#names("notes")) {
      const names = (await this.#names(`notes/${shard}`)).filter((name) => this.#tickets.has(name.slice(0, 36)));
      // A worker replaces its last note of progress; all other notes are put once.
      await this.#copier.copyAll(names.map((name) => this.#below(`notes/${shard}/${name}`)));
    }
  }

  async #names(directory: string): Promise<string[]> {
    try {
      return await this.#copier.names(this.#below(directory));
    } catch (error) {
      // A foreign entry.
      if (hasErrno(error, "ELOOP", "ESTALE")) return [];
      throw error;
    }
  }

  #below(path: string): string {
    return `${this.#path}/${path}`;
  }
}

function isOlder(one: TicketName, other: TicketName): boolean {
  return one.claims < other.claims || (one.claims === other.claims && one.replays < other.replays);
}
