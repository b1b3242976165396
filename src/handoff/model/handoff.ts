// The interface of a hand-off, as programs hold it, and what its methods take and give.
import type { Cancel, HolderInfo, OpenOptions, Running, VerifyOptions, VerifyReport } from "../../common.ts";
import type { ConsumeOptions, Handler } from "../consume/consumer.ts";
import type { Delivery } from "../consume/delivery.ts";
import type { ParkedTicket } from "../consume/parked.ts";
import type { AdoptRule, ExportRule } from "../foreign/rule.ts";
import type { Published } from "../publish/publisher.ts";
import type { Files, PublishOptions } from "./arguments.ts";
import type { Manifest, ManifestFile } from "./manifest.ts";

/** `id` is that of `box.json`. */
export interface HandoffOptions extends OpenOptions {
  /** A worker that is silent for this long is dead; its tickets go back. Default 30_000. */
  leaseMs?: number | undefined;
  /** Default "fsync". */
  durability?: "fsync" | "none" | undefined;
  /** Refuse to publish beyond it (back-pressure). Default: no limit. */
  limits?: { tickets?: number | undefined; bytes?: number | undefined; inFlight?: number | undefined } | undefined;
  /** How long finished things stay. Default: for ever. */
  retention?:
    { archiveMs?: number | undefined; errorMs?: number | undefined; ledgerMs?: number | undefined } | undefined;
}

export const ticketStates = ["incoming", "delayed", "processing", "archive", "error"] as const;
export type TicketState = (typeof ticketStates)[number];

export interface AttemptNote {
  readonly attempt: number;
  readonly at: Date;
  readonly outcome: "retry" | "fail" | "lost" | "expired" | "mismatch";
  readonly reason: string;
}

export interface TicketInfo extends Manifest {
  readonly state: TicketState;
  readonly attempt: number;
  readonly holder?: HolderInfo;
  readonly progress?: unknown;
  /** In the order of the attempts; at most the last 100. */
  readonly history: readonly AttemptNote[];
  /** From the ledger: what `ack` or the handler returned. */
  readonly result?: unknown;
  /** From the ledger: the output files of its handler, which `content` reads. Empty before it is done. */
  readonly outputs: readonly OutputFile[];
  readonly duplicate: boolean;
  /**
   * Why the ticket's file cannot be read. Then only `id`, `createdAt`, `state`, `attempt`, `holder` and `history` are
   * known; `key` is "" and `files` is empty.
   */
  readonly damaged?: string;
}

/** A file that a handler has made. */
export type OutputFile = Pick<ManifestFile, "name" | "size" | "sha256">;

/** A ticket that went to the dead letters. */
export interface DeadLetter {
  readonly id: string;
  readonly attempt: number;
  readonly outcome: AttemptNote["outcome"];
  readonly reason: string;
}

export type Consumer = Running;

export interface HandoffStats {
  readonly incoming: number;
  readonly delayed: number;
  readonly processing: number;
  readonly archive: number;
  readonly error: number;
  /** Processes that work on tickets of this box, and are not dead. */
  readonly holders: number;
  /** How long the oldest ticket in `incoming` could have been claimed. Absent without one. */
  readonly oldestIncomingMs?: number;
  readonly paused: boolean;
  /** As it was given to `pause`. */
  readonly pauseReason?: string;
}

export interface TakeOptions extends Cancel {
  /** How long to wait for a ticket. Default 0. */
  waitMs?: number | undefined;
  /**
   * Called for each ticket that goes to the dead letters: on the way to the one that is taken, because it is damaged,
   * expired, not what its manifest says, or was lost too often; or by `fail` of the one that is taken.
   */
  onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
}

export interface ExportOptions extends Cancel {
  /** Called for each ticket that goes to the dead letters, also because its names can never be in one folder. */
  onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
}

export interface ListOptions {
  limit?: number | undefined;
  group?: string | undefined;
}

export interface ContentOptions extends Cancel {
  /** Only what the handler made. Default false: the files of the ticket come first. */
  output?: boolean | undefined;
}

export interface ReplayOptions {
  from: "error" | "archive";
  /** Default: all. */
  id?: string | undefined;
  /** Count the attempts anew. Default true for dead letters: they would fail at once otherwise. */
  resetAttempts?: boolean | undefined;
}

export interface Collected {
  readonly tickets: number;
  readonly bytes: number;
}

export interface Handoff extends AsyncDisposable {
  readonly directory: string;
  publish(files: Files, options?: PublishOptions): Promise<Published>;
  /** Shares the fsyncs; yields in the order given. */
  publishMany(
    items: Iterable<{ files: Files } & PublishOptions> | AsyncIterable<{ files: Files } & PublishOptions>,
    options?: Cancel,
  ): AsyncIterable<Published>;
  /**
   * What the handler returns is the result; it is committed with the ledger entry. What it throws is a retry (see
   * `onError`).
   */
  consume(handler: Handler, options?: ConsumeOptions): Consumer;
  take(options?: TakeOptions): Promise<Delivery | undefined>;
  deliveries(options?: Omit<TakeOptions, "waitMs">): AsyncIterable<Delivery>;
  /**
   * Takes a ticket and parks the claim for `forMs`, for a process that ends before the work is done. Until then any
   * process can go on with it by `resumeParked`; then the ticket goes back.
   */
  takeParked(forMs: number, options?: TakeOptions): Promise<ParkedTicket | undefined>;
  /** `claim` as `takeParked` told it, or the ticket's id. CLAIM_LOST when it is not parked any more. */
  resumeParked(claim: string, options?: Cancel): Promise<Delivery>;
  /** One pass over a foreign folder; how many tickets it made. */
  adopt(directory: string, rule: AdoptRule, options?: Cancel): Promise<number>;
  /** The same, until stopped. */
  keepAdopting(directory: string, rule: AdoptRule, options?: Cancel & { everyMs?: number | undefined }): Running;
  /**
   * Hands what can be taken now to a plain folder: payload first, done file last. How many tickets that were. One whose
   * name is still in the folder stays in the box.
   */
  export(directory: string, rule?: ExportRule, options?: ExportOptions): Promise<number>;
  /** The same, until stopped. */
  keepExporting(directory: string, rule?: ExportRule, options?: ExportOptions): Running;
  /** Undefined for a ticket that is not there. */
  find(id: string): Promise<TicketInfo | undefined>;
  findByKey(key: string): Promise<TicketInfo | undefined>;
  /** In the order in which they will be worked, or were done. */
  list(state: TicketState, options?: ListOptions): AsyncIterable<TicketInfo>;
  /** The producer's receipt: resolves when the ticket is in `archive` or `error`. NO_SUCH_TICKET. */
  waitFor(id: string, options?: Cancel): Promise<TicketInfo>;
  /**
   * One file of a ticket, whatever its state; checked before the first byte is given. Where the ticket has no file of
   * that name, the output of that name; with `output: true` the output in any case. NO_SUCH_TICKET, NO_SUCH_FILE,
   * PAYLOAD_MISMATCH.
   */
  content(id: string, name: string, options?: ContentOptions): AsyncIterable<Uint8Array>;
  stats(): Promise<HandoffStats>;
  /** How many tickets came back. CORRUPT when `id` is that of a ticket whose file is damaged. */
  replay(options: ReplayOptions): Promise<number>;
  /** Consumers on all machines take nothing new; what they have in hand they finish. */
  pause(reason?: string): Promise<void>;
  resume(): Promise<void>;
  /** Removes what `retention` lets go, and what crashes have left. */
  collect(options?: Cancel): Promise<Collected>;
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  close(): Promise<void>;
}
