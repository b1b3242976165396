// The audit of the shelves: the journals of all workstations show whether two conflicting locks
// were ever held at once.
import { readNoted, type Findings, type SharedFolder, type Receipt } from "./station.ts";

const journalBytesMax = 100_000_000;
const shelfBytesMax = 100;

/**
 * One line of a journal: what was found on each shelf when the lock was acquired, or, without
 * `saw`, that everything was written.
 */
export interface JournalLine {
  readonly sequence: number;
  readonly fence: number;
  /** By shelf, the fence of the previous visit. */
  readonly saw?: Readonly<Record<string, number>>;
}

/** One visit to a shelf under a lock. */
interface Visit {
  readonly who: string;
  readonly fence: number;
  /** The fence on the shelf when the visit began. */
  readonly saw: number;
  /** True if everything was written before the lock was released; otherwise the process was killed inside. */
  isDone: boolean;
}

/**
 * Finds visits that overlapped, without comparing clocks: each visitor recorded the fence of the
 * one before it. If two visits overlapped, one visitor cannot have seen what the other left.
 */
export async function auditShelves(
  folder: SharedFolder,
  shelves: readonly string[],
  receipts: readonly Receipt[],
): Promise<Findings> {
  const disorder: string[] = [];
  const { done, visits, doubled } = await readJournals(folder, disorder);
  for (const shelf of shelves) {
    const inOrder = (visits.get(shelf) ?? []).sort((a, b) => a.fence - b.fence);
    const left = await readNoted(disorder, () => readShelf(folder, shelf));
    disorder.push(...findDisorder(shelf, inOrder, left));
  }
  const lost = receipts.filter((receipt) => !done.has(idOf(receipt)));
  return {
    acknowledged: receipts.length,
    found: done.size,
    lost: lost.map((receipt) => `${receipt.what}, piece ${receipt.sequence} of ${receipt.workstation}`),
    doubled,
    disorder,
    shown: "fences grew on every shelf, and each came after the one before had left: no two were inside together",
  };
}

/** `left` is the current content of the shelf, if it is readable. */
function findDisorder(shelf: string, visits: readonly Visit[], left = Infinity): string[] {
  const disorder: string[] = [];
  let last: Visit | undefined;
  for (const visit of visits) {
    const { who, fence, saw, isDone } = visit;
    if (last !== undefined && saw < last.fence)
      disorder.push(`${who} found fence ${saw} on ${shelf}, where ${last.who} had left ${last.fence}`);
    if (saw >= fence) disorder.push(`${who} came to ${shelf} with fence ${fence}, after fence ${saw}`);
    if (isDone) last = visit;
  }
  if (last !== undefined && left < last.fence)
    disorder.push(`fence ${left} lies on ${shelf}, where ${last.who} was last, with ${last.fence}`);
  return disorder;
}

interface Journals {
  /** Returns the lines that were written to their end. */
  readonly done: ReadonlySet<string>;
  readonly visits: ReadonlyMap<string, Visit[]>;
  readonly doubled: readonly string[];
}

async function readJournals({ disk, directory }: SharedFolder, disorder: string[]): Promise<Journals> {
  const [done, visits, doubled] = [new Set<string>(), new Map<string, Visit[]>(), [] as string[]];
  for (const name of (await readNoted(disorder, () => disk.list(`${directory}/journals`))) ?? []) {
    const [workstation = "", session = ""] = name.split("~");
    const path = `${directory}/journals/${name}`;
    const bytes = await readNoted(disorder, () => disk.readFile(path, journalBytesMax));
    // The text after the last line break is what a process was writing when it was killed.
    const lines = Buffer.from(bytes ?? [])
      .toString()
      .split("\n")
      .slice(0, -1);
    let open: Visit[] = [];
    for (const [index, text] of lines.entries()) {
      const line = findLine(text);
      if (line === undefined) {
        disorder.push(`${path}: line ${index + 1} is damaged`);
        open = [];
        continue;
      }
      const { sequence, fence, saw } = line;
      const who = `${workstation} (piece ${sequence})`;
      if (saw === undefined) {
        const id = idOf({ session, sequence });
        if (done.has(id)) doubled.push(`piece ${sequence} of ${workstation}`);
        done.add(id);
        for (const visit of open) visit.isDone = true;
        continue;
      }
      open = Object.entries(saw).map(([shelf, before]) => {
        const visit: Visit = { who, fence, saw: before, isDone: false };
        visits.set(shelf, [...(visits.get(shelf) ?? []), visit]);
        return visit;
      });
    }
  }
  return { done, visits, doubled };
}

/** Undefined for a line that no workstation wrote. */
function findLine(text: string): JournalLine | undefined {
  try {
    const { sequence, fence, saw } = JSON.parse(text) as Partial<Record<keyof JournalLine, unknown>>;
    if (typeof sequence !== "number" || typeof fence !== "number") return undefined;
    if (saw === undefined) return { sequence, fence };
    if (typeof saw !== "object" || saw === null) return undefined;
    const isSound = Object.values(saw).every((before) => typeof before === "number");
    return isSound ? { sequence, fence, saw: saw as Record<string, number> } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the fence on a shelf. */
export async function readShelf({ disk, directory }: SharedFolder, shelf: string): Promise<number> {
  const bytes = await disk.readFile(`${directory}/warehouse/${shelf}`, shelfBytesMax);
  // Another workstation is just creating the file.
  return Number.parseInt(Buffer.from(bytes).toString(), 10) || 0;
}

function idOf({ session, sequence }: Pick<Receipt, "session" | "sequence">): string {
  return `${session}:${sequence}`;
}
