// Document flow: every workstation hands documents over to all the others, and processes those it
// receives. A document is done when its result is in the ledger.
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk } from "../../../durable/index.ts";
import { openHandoff, type Handoff } from "../../../handoff/index.ts";
import { isHoldfastError } from "../../../index.ts";
import {
  elsewhereMs,
  readNoted,
  type Clerk,
  type Findings,
  type SharedFolder,
  type Receipt,
  type Station,
  type StationKind,
  type WorkOptions,
} from "./station.ts";

const station = "documents";
const recordBytesMax = 1_000_000;

export const documentFlow: StationKind = {
  name: station,
  about:
    "Each hands documents over to the others and works on what comes: whichever of them is killed, each document is done once.",
  pieces: "documents",
  every: 3,
  open: async (folder, clerk) => new DocumentStation(await openBox(folder), clerk),
  audit: auditDocuments,
};

class DocumentStation implements Station {
  readonly #box: Handoff;
  readonly #clerk: Clerk;

  constructor(box: Handoff, clerk: Clerk) {
    this.#box = box;
    this.#clerk = clerk;
  }

  async work(sequence: number, { signal, forgets }: WorkOptions): Promise<Receipt> {
    const receipt = { station, ...this.#clerk, sequence, what: `document ${sequence}` };
    if (forgets) return receipt;
    const key = keyOf(receipt);
    await this.#box.publish({ "document.txt": `${receipt.what} of ${this.#clerk.workstation}` }, { key, signal });
    // Processes more documents than it hands over, so that nothing piles up. The receipt is for the
    // document that was handed over.
    for (let times = 0; times < 2; times++) await workOne(this.#box, this.#clerk.workstation);
    return receipt;
  }

  async close(): Promise<void> {
    await this.#box.close();
  }
}

async function openBox({ directory }: SharedFolder): Promise<Handoff> {
  return await openHandoff(`${directory}/documents`);
}

/** Processes one document. Returns false if there is none. */
async function workOne(box: Handoff, by: string): Promise<boolean> {
  const delivery = await box.take();
  if (delivery === undefined) return false;
  try {
    const text = await delivery.text("document.txt");
    await delivery.ack({ by, read: text.length });
  } catch (error) {
    // This workstation slept past its lease. Another one processes the document.
    if (!isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST", "OUTCOME_UNKNOWN") && !delivery.signal.aborted) throw error;
  }
  return true;
}

function keyOf({ session, sequence }: Pick<Receipt, "session" | "sequence">): string {
  return `${session}:${sequence}`;
}

/** Processes the remaining documents like any workstation, then searches for each document. */
async function auditDocuments(folder: SharedFolder, receipts: readonly Receipt[]): Promise<Findings> {
  const disorder: string[] = [];
  await readNoted(disorder, async () => {
    const box = await openBox(folder);
    try {
      for (const untilMs = performance.now() + elsewhereMs; performance.now() < untilMs;) {
        while (await workOne(box, "audit")) continue;
        if (!(await isWorkedOn(folder))) break;
        await sleep(200);
      }
    } finally {
      await box.close();
    }
  });
  const done = new Set(await keysUnder(folder, "ledger", disorder));
  const missing = receipts.filter((receipt) => !done.has(keyOf(receipt)));
  const failed = await keysUnder(folder, "error", disorder);
  const archived = await keysUnder(folder, "archive", disorder);
  const doubled = archived.filter((key, index) => archived.indexOf(key) !== index);
  return {
    acknowledged: receipts.length,
    found: done.size,
    lost: missing.map((receipt) => `${receipt.what}, piece ${receipt.sequence} of ${receipt.workstation}`),
    doubled: doubled.map((key) => `document ${key}`),
    disorder: [...disorder, ...failed.map((key) => `document ${key} was given up`)],
    shown: "each document is once in the ledger, and none is stuck with a workstation that was killed",
  };
}

/**
 * True if a live workstation has claimed a document: the claims of killed ones were returned by
 * now.
 */
async function isWorkedOn({ disk, directory }: SharedFolder): Promise<boolean> {
  for (const part of ["processing", "staging"])
    for (const holder of await namesIn(disk, `${directory}/documents/${part}`, []))
      if ((await namesIn(disk, `${directory}/documents/${part}/${holder}`, [])).length > 0) return true;
  return false;
}

/** Returns the keys of the records in one part of the box. */
async function keysUnder({ disk, directory }: SharedFolder, part: string, disorder: string[]): Promise<string[]> {
  const keys: string[] = [];
  const parent = `${directory}/documents/${part}`;
  for (const below of await namesIn(disk, parent, disorder))
    for (const name of await namesIn(disk, `${parent}/${below}`, disorder)) {
      const path = `${parent}/${below}/${name}`;
      const bytes = await readNoted(disorder, () => disk.readFile(path, recordBytesMax));
      const key = bytes === undefined ? undefined : findKey(bytes);
      if (key !== undefined) keys.push(key);
      else if (bytes !== undefined) disorder.push(`${path} is damaged`);
    }
  return keys;
}

/** Empty if the directory does not exist: no document has arrived so far. */
async function namesIn(disk: Disk, directory: string, disorder: string[]): Promise<readonly string[]> {
  if ((await disk.findStat(directory)) === undefined) return [];
  return (await readNoted(disorder, () => disk.list(directory))) ?? [];
}

/** Undefined for bytes that no workstation wrote. */
function findKey(bytes: Uint8Array): string | undefined {
  try {
    const { body } = JSON.parse(Buffer.from(bytes).toString()) as { body: { key?: unknown } };
    return typeof body.key === "string" ? body.key : undefined;
  } catch {
    return undefined;
  }
}
