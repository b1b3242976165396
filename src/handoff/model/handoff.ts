// The interface of a hand-off, and the types of its arguments and results.
import type { Cancel, HolderInfo, OpenOptions, Problem, Running, VerifyOptions, VerifyReport } from "../../common.ts";
import type { AdoptRule, ExportRule } from "./foreign-rule.ts";
import type { Files, PublishOptions } from "./arguments.ts";
import type { ConsumeOptions, Handler } from "./consume-options.ts";
import type { Delivery, ParkedTicket } from "./delivery.ts";
import type { Manifest, ManifestFile } from "./manifest.ts";
import type { Published } from "./publication.ts";

/** Options of `openHandoff`. `id` is the id in `box.json`. */
export interface HandoffOptions extends OpenOptions {
  /** A worker that is silent for this long is dead, and its tickets return to the queue. Default 30,000. */
  leaseMs?: number | undefined;
  /**
   * `fsync` syncs every step before it is acknowledged; `none` leaves that to the operating system.
   * Default `fsync`.
   */
  durability?: "fsync" | "none" | undefined;
  /** Limits of the box. Default: none. */
  limits?:
    | {
        /** How many tickets may wait or be in progress. A publish beyond it throws RESOURCE_BUSY. */
        tickets?: number | undefined;
        /** How many bytes of payload may wait or be in progress. A publish beyond it throws RESOURCE_BUSY. */
        bytes?: number | undefined;
        /** How many tickets may be in progress at the same time, on all machines. Further ones wait. */
        inFlight?: number | undefined;
      }
    | undefined;
  /** How long `collect` keeps tickets that are done or failed, and the ledger. Default: forever. */
  retention?:
    | {
        /** How long archived tickets stay. */
        archiveMs?: number | undefined;
        /** How long dead letters stay. */
        errorMs?: number | undefined;
        /** How long results, outputs and keys stay in the ledger. */
        ledgerMs?: number | undefined;
      }
    | undefined;
}

export const ticketStates: readonly TicketState[] = ["incoming", "delayed", "processing", "archive", "error"];
/**
 * The state of a ticket: waiting (`incoming`, `delayed`), in progress (`processing`), done
 * (`archive`) or a dead letter (`error`).
 */
export type TicketState = "incoming" | "delayed" | "processing" | "archive" | "error";

/** A failed attempt at a ticket. */
export interface AttemptNote {
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** When the attempt ended. */
  readonly at: Date;
  /**
   * `retry` and `fail`: the handler ended it. `lost`: its worker died. `expired`: the ticket was
   * too old. `mismatch`: a file did not match the manifest.
   */
  readonly outcome: "retry" | "fail" | "lost" | "expired" | "mismatch";
  /** Why, in words. */
  readonly reason: string;
}

/** A ticket and its current state. */
export interface TicketInfo extends Manifest {
  /** The state of the ticket. */
  readonly state: TicketState;
  /** Number of the current or last attempt; 0 before the first. */
  readonly attempt: number;
  /** The worker process that has claimed the ticket. Only in state `processing`. */
  readonly holder?: HolderInfo;
  /** The last note that the handler passed to `progress`. */
  readonly progress?: unknown;
  /** The failed attempts, oldest first; at most the last 100. */
  readonly history: readonly AttemptNote[];
  /** The value that the handler returned or passed to `ack`. Read from the ledger. */
  readonly result?: unknown;
  /** The output files of the handler, which `content` reads. Empty until the ticket is done. */
  readonly outputs: readonly OutputFile[];
  /**
   * True if the ticket was archived without a handler, because another ticket with its key was
   * already done.
   */
  readonly duplicate: boolean;
  /**
   * Why the file of the ticket cannot be read. Then only `id`, `createdAt`, `state`, `attempt`,
   * `holder` and `history` are known; `key` is "" and `files` is empty.
   */
  readonly damaged?: string;
}

/** A file that a handler produced. */
export type OutputFile = Pick<ManifestFile, "name" | "size" | "sha256">;

/** A ticket that became a dead letter. */
export interface DeadLetter {
  /** The id of the ticket. */
  readonly id: string;
  /** Number of its last attempt. */
  readonly attempt: number;
  /** How the last attempt ended. */
  readonly outcome: AttemptNote["outcome"];
  /** Why, in words. */
  readonly reason: string;
}

/** A running consumer. */
export type Consumer = Running;

/** Counts of a box. A ticket that moves during the count may be counted twice or not at all. */
export interface HandoffStats {
  /** Tickets that can be claimed now. */
  readonly incoming: number;
  /** Tickets that can be claimed later. */
  readonly delayed: number;
  /** Tickets in progress. */
  readonly processing: number;
  /** Tickets that are done. */
  readonly archive: number;
  /** Dead letters. */
  readonly error: number;
  /** Live processes that work on tickets of this box. */
  readonly holders: number;
  /** How long the oldest ticket in `incoming` has been claimable. Absent if there is none. */
  readonly oldestIncomingMs?: number;
  /** True if the box is paused. */
  readonly paused: boolean;
  /** The reason that was passed to `pause`, if any. */
  readonly pauseReason?: string;
}

/** Options of `take`. */
export interface TakeOptions extends Cancel {
  /** How long to wait for a ticket. Default 0. */
  waitMs?: number | undefined;
  /**
   * Called for each ticket that becomes a dead letter: one that is skipped because it is damaged,
   * expired, does not match its manifest or was lost too often, or the taken one if it fails.
   */
  onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
}

/** Options of `adopt`. */
export interface AdoptOptions extends Cancel {
  /**
   * Called once for each entry of the folder that cannot be adopted: a directory or a link instead
   * of a file, an unreadable file, an invalid manifest. `verify` reports them as well. If it
   * throws, the adoption ends with that error.
   */
  onProblem?: ((problem: Problem) => void) | undefined;
}

/** Options of `export`. */
export interface ExportOptions extends Cancel {
  /**
   * Called for each ticket that becomes a dead letter, for instance because its file names cannot
   * share one folder.
   */
  onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
}

/** Options of `list`. */
export interface ListOptions {
  /** The largest number of tickets to return. Default: all. */
  limit?: number | undefined;
  /** Returns only tickets of this group. Default: all tickets. */
  group?: string | undefined;
  /** Skips this many tickets; without `group`, it does not read them. For pages. Default 0. */
  skip?: number | undefined;
  /** Lists in the reverse order: the last one that was done or will be delivered first. Default false. */
  backwards?: boolean | undefined;
}

/** Options of `content`. */
export interface ContentOptions extends Cancel {
  /** Reads only outputs of the handler. Default false: files of the ticket take precedence. */
  output?: boolean | undefined;
}

/** Options of `replay`. */
export interface ReplayOptions {
  /** Replays dead letters (`error`) or finished tickets (`archive`). */
  from: "error" | "archive";
  /** Replays only this ticket. Default: all. */
  id?: string | undefined;
  /**
   * Restarts the count of attempts. Default true for `error`, where a ticket would otherwise fail
   * at once; false for `archive`.
   */
  resetAttempts?: boolean | undefined;
}

/** Options of `discard`. */
export interface DiscardOptions {
  /** Discards dead letters (`error`) or finished tickets (`archive`). */
  from: "error" | "archive";
  /** Discards only this ticket. Default: all. */
  id?: string | undefined;
}

/** The result of `collect`. */
export interface Collected {
  /** How many tickets were removed. */
  readonly tickets: number;
  /** How many bytes of payload were removed. */
  readonly bytes: number;
}

/**
 * A box: producers publish tickets, which are sets of files; each ticket is claimed by one worker
 * at a time. After `close` every method throws CLOSED.
 */
export interface Handoff extends AsyncDisposable {
  /** The absolute path of the box, or its location in a database. */
  readonly directory: string;
  /**
   * Publishes a ticket with these files. It is durable when the promise resolves, and visible only
   * as a whole.
   *
   * Throws INVALID_NAME for a file name that some file system refuses, TOO_LARGE, RESOURCE_BUSY
   * beyond `limits`, LOCK_LOST if this process was judged dead meanwhile, and OUTCOME_UNKNOWN if
   * the answer was lost: publish again with the same `key`.
   *
   * @example
   * ```ts
   * await box.publish({ "invoice.pdf": bytes, "invoice.json": "{}" }, { key: "invoice-4711", group: "customer-12" });
   * ```
   */
  publish(files: Files, options?: PublishOptions): Promise<Published>;
  /**
   * Publishes many tickets with shared syncs, and yields the results in order. A ticket that fails
   * rejects its own `next`; the following call continues with the next ticket. Throws as `publish`
   * does.
   */
  publishMany(
    items: Iterable<{ files: Files } & PublishOptions> | AsyncIterable<{ files: Files } & PublishOptions>,
    options?: Cancel,
  ): AsyncIterable<Published>;
  /**
   * Starts a consumer, which calls `handler` for each ticket. The value that the handler returns is
   * the ticket's result, committed with its ledger entry. If the handler throws, the ticket is
   * retried, or as `onError` decides.
   */
  consume(handler: Handler, options?: ConsumeOptions): Consumer;
  /**
   * Claims the next ticket. Returns undefined if none can be claimed within `waitMs`.
   *
   * @example
   * ```ts
   * await using delivery = await box.take({ waitMs: 10_000 });
   * if (delivery !== undefined) await delivery.ack(await process(await delivery.text("order.json")));
   * ```
   */
  take(options?: TakeOptions): Promise<Delivery | undefined>;
  /**
   * Claims tickets one after the other, and waits for the next one without limit. Settle each
   * delivery before the next.
   *
   * @example
   * ```ts
   * for await (const delivery of box.deliveries({ signal })) {
   *   await using claimed = delivery;
   *   await claimed.ack(await process(await claimed.text("order.json")));
   * }
   * ```
   */
  deliveries(options?: Omit<TakeOptions, "waitMs">): AsyncIterable<Delivery>;
  /**
   * Claims a ticket and parks the claim for `forMs`, for a process that ends before the work is
   * done. Any process can continue it with `resumeParked`. After that time the ticket returns to
   * the queue.
   */
  takeParked(forMs: number, options?: TakeOptions): Promise<ParkedTicket | undefined>;
  /**
   * Continues a parked claim. `claim` is `ParkedTicket.claim` or the id of the ticket. Throws
   * CLAIM_LOST if it is no longer parked.
   */
  resumeParked(claim: string, options?: Cancel): Promise<Delivery>;
  /**
   * Publishes the complete files of a foreign folder, in one pass, and returns the number of new
   * tickets. An entry that cannot be adopted does not block the others. Throws INVALID_PATH if
   * there is no such folder, and RESOURCE_BUSY beyond `limits`.
   */
  adopt(directory: string, rule: AdoptRule, options?: AdoptOptions): Promise<number>;
  /**
   * Adopts a foreign folder every `everyMs` (default 1,000) until it is stopped. Waits while the
   * box is full.
   */
  keepAdopting(directory: string, rule: AdoptRule, options?: AdoptOptions & { everyMs?: number | undefined }): Running;
  /**
   * Moves every ticket that can be claimed now to a plain folder, payload first and done file last,
   * and returns their number. A ticket stays in the box while the folder still contains a file of
   * the same name. Throws INVALID_PATH if there is no such folder.
   */
  export(directory: string, rule?: ExportRule, options?: ExportOptions): Promise<number>;
  /** Exports tickets to a plain folder as they arrive, until it is stopped. */
  keepExporting(directory: string, rule?: ExportRule, options?: ExportOptions): Running;
  /** Finds a ticket by its id. Returns undefined if the box does not contain it. */
  find(id: string): Promise<TicketInfo | undefined>;
  /** Finds a ticket by its key. Returns undefined if the box does not contain it. */
  findByKey(key: string): Promise<TicketInfo | undefined>;
  /**
   * Lists the tickets in one state: those that wait in the order of their delivery, those that are
   * done in the order in which they ended.
   */
  list(state: TicketState, options?: ListOptions): AsyncIterable<TicketInfo>;
  /**
   * Waits until a ticket is in `archive` or `error`, and returns it. Throws NO_SUCH_TICKET, and
   * CORRUPT if the archived ticket is damaged.
   */
  waitFor(id: string, options?: Cancel): Promise<TicketInfo>;
  /**
   * Reads one file of a ticket in any state, and checks it before it yields the first byte. If the
   * ticket has no file of that name, or with `output: true`, reads the output of that name. Throws
   * NO_SUCH_TICKET, NO_SUCH_FILE and PAYLOAD_MISMATCH, and CORRUPT if the ticket is damaged.
   */
  content(id: string, name: string, options?: ContentOptions): AsyncIterable<Uint8Array>;
  /** Counts the tickets of the box. */
  stats(): Promise<HandoffStats>;
  /**
   * Returns dead letters or finished tickets to the queue, and returns their number. Throws CORRUPT
   * if `id` is a ticket whose file is damaged.
   */
  replay(options: ReplayOptions): Promise<number>;
  /**
   * Removes dead letters or finished tickets permanently, with their files, and returns their
   * number. The ledger keeps the result of a finished ticket.
   */
  discard(options: DiscardOptions): Promise<number>;
  /** Pauses the box: consumers on all machines claim nothing new, and finish the tickets in progress. */
  pause(reason?: string): Promise<void>;
  /** Ends a pause. */
  resume(): Promise<void>;
  /** Removes tickets whose `retention` has ended, and leftovers of crashes. */
  collect(options?: Cancel): Promise<Collected>;
  /** Checks every record and payload of the box. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /** Stops its loops, returns its claimed tickets to the queue and closes the box. */
  close(): Promise<void>;
}
