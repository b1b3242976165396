// Shelf work: a path lock on a shelf, on a room with all its shelves, or on two shelves at once,
// and a journal that shows afterwards whether two conflicting locks were held at once.
import { ensureDirectory, replace, type DiskFile } from "../../../durable/index.ts";
import { isHoldfastError } from "../../../index.ts";
import { openPathLocks, type PathHold, type PathLocks } from "../../../locks/index.ts";
import { auditShelves, readShelf, type JournalLine } from "./shelf-audit.ts";
import type { Clerk, SharedFolder, Receipt, Station, StationKind, WorkOptions } from "./station.ts";

const station = "shelves";
const rooms = ["north", "south"];
const shelvesPerRoom = 3;

const shelves: readonly string[] = rooms.flatMap((room) =>
  Array.from({ length: shelvesPerRoom }, (_, index) => `${room}/shelf-${index + 1}`),
);

export const shelfWork: StationKind = {
  name: station,
  about:
    "Now and then each locks a shelf, a whole room, or two shelves at once, and leaves the fence of its lock there: no two may be inside together.",
  pieces: "locks",
  every: 5,
  open: async (folder, clerk) => await ShelfStation.open(folder, clerk),
  audit: (folder, receipts) => auditShelves(folder, shelves, receipts),
};

class ShelfStation implements Station {
  readonly #folder: SharedFolder;
  readonly #clerk: Clerk;
  readonly #locks: PathLocks;
  readonly #journal: DiskFile;
  #journalBytes = 0;

  private constructor(folder: SharedFolder, clerk: Clerk, locks: PathLocks, journal: DiskFile) {
    this.#folder = folder;
    this.#clerk = clerk;
    this.#locks = locks;
    this.#journal = journal;
  }

  static async open(folder: SharedFolder, clerk: Clerk): Promise<ShelfStation> {
    const { directory, disk } = folder;
    for (const name of ["journals", ...rooms.map((room) => `warehouse/${room}`)])
      await ensureDirectory(disk, `${directory}/${name}`);
    for (const shelf of shelves) await makeShelf(folder, shelf);
    const locks = await openPathLocks(`${directory}/warehouse`);
    const journal = await disk.open(`${directory}/journals/${clerk.workstation}~${clerk.session}`, "create");
    return new ShelfStation(folder, clerk, locks, journal);
  }

  async work(sequence: number, { signal, forgets }: WorkOptions): Promise<Receipt> {
    const [what, hold, locked] = await this.#lock({ signal, timeoutMs: Infinity });
    const { fence } = hold;
    try {
      const saw: Record<string, number> = {};
      for (const shelf of locked) saw[shelf] = await readShelf(this.#folder, shelf);
      if (!forgets) {
        await this.#note({ sequence, fence, saw });
        for (const shelf of locked) await this.#leave(shelf, fence);
        await this.#note({ sequence, fence });
      }
    } finally {
      await hold.release();
    }
    return { station, ...this.#clerk, sequence, what: `a lock on ${what} with fence ${fence}` };
  }

  async close(): Promise<void> {
    await this.#locks.close();
    await this.#journal.close();
  }

  /** Takes one of the three kinds of locks, on random shelves. */
  async #lock(waiting: { signal: AbortSignal; timeoutMs: number }): Promise<[string, PathHold, readonly string[]]> {
    const [from, to] = [pick(shelves), pick(shelves)];
    const chance = Math.random();
    if (chance < 0.5) return [from, await this.#locks.acquire(from, waiting), [from]];
    if (chance < 0.8 && from !== to)
      return [`${from} and ${to}`, await this.#locks.acquireMove(from, to, waiting), [from, to]];
    const room = pick(rooms);
    const hold = await this.#locks.acquire(room, { ...waiting, mode: "tree" });
    return [`all of ${room}`, hold, shelves.filter((shelf) => shelf.startsWith(`${room}/`))];
  }

  async #leave(shelf: string, fence: number): Promise<void> {
    // Neither this file nor the journal is synced: the demo kills processes but cuts no power, and
    // a killed process leaves what it wrote.
    const path = `${this.#folder.directory}/warehouse/${shelf}`;
    await replace(this.#folder.ground.staging, path, Buffer.from(`${fence}\n`), { sync: false });
  }

  async #note(line: JournalLine): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    await this.#journal.write(this.#journalBytes, bytes);
    this.#journalBytes += bytes.length;
  }
}

/**
 * The file is created before it is first locked: the client of a network mount would cache that it
 * does not exist.
 */
async function makeShelf({ disk, directory }: SharedFolder, shelf: string): Promise<void> {
  try {
    await disk.createFile(`${directory}/warehouse/${shelf}`, Buffer.from("0\n"), { sync: false });
  } catch (error) {
    // Another workstation created it.
    if (!isHoldfastError(error, "IO_ERROR") || error.errno !== "EEXIST") throw error;
  }
}

function pick<T>(choices: readonly T[]): T {
  return choices[Math.floor(Math.random() * choices.length)] as T;
}
