// One working workstation: it does piece after piece until it is told to stop, and issues a receipt
// for each.
import { randomBytes } from "node:crypto";
import { isHoldfastError } from "../../index.ts";
import { documentFlow } from "./stations/document-flow.ts";
import { priceLabels } from "./stations/price-labels.ts";
import { noteKeeping } from "./stations/note-keeping.ts";
import { shelfWork } from "./stations/shelf-work.ts";
import {
  openSharedFolder,
  type Clerk,
  type SharedFolder,
  type Receipt,
  type Station,
  type StationKind,
  type WorkOptions,
} from "./stations/station.ts";
import { stockSales } from "./stations/stock-sales.ts";
import { ticketSales } from "./stations/ticket-sales.ts";

/** The kinds of work that the demo shows. Each workstation does them in turn. */
export const stationKinds: readonly StationKind[] = [
  ticketSales,
  stockSales,
  shelfWork,
  documentFlow,
  priceLabels,
  noteKeeping,
];

export interface WorkstationOptions {
  readonly directory: string;
  readonly name: string;
  /** True if the workstation acknowledges its first piece of work without writing it. */
  readonly sabotage: boolean;
  readonly onReceipt: (receipt: Receipt) => void;
  readonly signal: AbortSignal;
}

/** Works until the signal aborts. Everything with a receipt is durable when this resolves. */
export async function runWorkstation({
  directory,
  name,
  sabotage,
  onReceipt,
  signal,
}: WorkstationOptions): Promise<void> {
  const folder = await openSharedFolder(directory, name);
  const clerk: Clerk = { workstation: name, session: randomBytes(4).toString("hex") };
  const stations: { readonly station: Station; readonly every: number }[] = [];
  try {
    for (const { open, every } of stationKinds) stations.push({ station: await open(folder, clerk), every });
    for (let sequence = 1; !signal.aborted; sequence++)
      for (const { station, every } of stations) {
        if ((sequence - 1) % every !== 0) continue;
        const forgets = sabotage && sequence === 1;
        const receipt = await workOnce(folder, station, sequence, { signal, forgets });
        if (receipt !== undefined) onReceipt(receipt);
      }
  } finally {
    for (const { station } of stations) await station.close();
    await folder.ground.close();
  }
}

/**
 * Does one piece of work. Returns undefined if no receipt can be issued because it is unknown
 * whether the piece exists. Such a piece is not repeated, so that it cannot exist twice.
 */
async function workOnce(
  { ground }: SharedFolder,
  station: Station,
  sequence: number,
  options: WorkOptions,
): Promise<Receipt | undefined> {
  if (options.signal.aborted) return undefined;
  const life = await ground.session();
  try {
    return await station.work(sequence, options);
  } catch (error) {
    const isInterrupted = options.signal.aborted && error === options.signal.reason;
    // After a sleep longer than the lease, others have swept this session's temp files and dropped
    // its locks. The next piece starts a new session.
    if (isInterrupted || life.isOver || isHoldfastError(error, "OUTCOME_UNKNOWN", "LOCK_LOST")) return undefined;
    throw error;
  }
}
