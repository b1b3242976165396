// The seam between deliveries and an engine: a source of claims, and the settler of one claim. The
// rest of this folder knows no engine.
import type { Body } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { Files, PublishOptions } from "../model/arguments.ts";
import type { ParkedTicket, SendTarget } from "../model/delivery.ts";
import type { DeadLetter } from "../model/handoff.ts";
import type { Manifest, ManifestFile } from "../model/manifest.ts";
import type { Arrivals } from "./arrivals.ts";

/**
 * One claim of a ticket, whose files match the manifest. Every method that settles it throws
 * CLAIM_LOST if another process may have the ticket by now; then nothing was changed. After any
 * other failure the claim is still held and can be settled again, in the same or another way.
 */
export interface Settler {
  readonly manifest: Manifest;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** The session that holds the claim. When the session ends, the claim is lost. */
  readonly session: ClaimSession;
  readonly payload: Payload;
  readonly outputs: Outputs;
  /**
   * Commits the result under the ticket's key, together with the outputs. If the key was committed
   * before, that commit stands, and the ticket is done too.
   */
  commit(result: unknown): Promise<void>;
  /** Returns the ticket to the queue, due after `delayMs`. The attempt counts. */
  retry(delayMs: number, reason: string): Promise<void>;
  /** Makes the ticket a dead letter. */
  fail(reason: string): Promise<void>;
  /**
   * Returns the ticket to the queue, due after `delayMs`. The attempt does not count. Returns false
   * if the claim was lost.
   */
  giveBack(delayMs: number): Promise<boolean>;
  /** Keeps the claim for `forMs`, for another process. */
  park(forMs: number): Promise<ParkedTicket>;
  /** Replaces the progress note. May skip a note that is followed at once by another. */
  progress(note: unknown): Promise<void>;
  /**
   * Releases what the claim holds in this process, such as leases, temporary files and outputs that
   * were not committed. Called once, after the claim was settled, given back or lost.
   */
  end(): Promise<void>;
}

export interface ClaimSession {
  /**
   * True once the session is over. Reads the clocks, so it is right even just after the machine
   * slept.
   */
  readonly isOver: boolean;
  /** Aborts as soon as this process knows that the session is over. */
  readonly signal: AbortSignal;
}

/** The files of a claimed ticket. */
export interface Payload {
  /** Yields the bytes of a file. */
  read(file: ManifestFile): AsyncIterable<Uint8Array>;
  /** Returns a path of the file, valid until the claim ends. */
  path(file: ManifestFile): Promise<string>;
}

/** What a handler produces beside its result. It becomes visible with the commit, or never. */
export interface Outputs {
  /** Stages an output file. Throws CLAIM_LOST, INVALID_NAME, and a TypeError for a name that is taken. */
  add(name: string, body: Body): Promise<void>;
  /** Stages a ticket for another box. Throws CLAIM_LOST, INVALID_NAME, TOO_LARGE and NOT_A_STORE. */
  send(target: SendTarget, files: Files, options: PublishOptions): Promise<void>;
}

export interface ClaimRequest {
  /** A ticket that was attempted more often becomes a dead letter. */
  readonly attempts: number;
  /** Called for each ticket that becomes a dead letter before a handler sees it. */
  readonly onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
}

/** Claims tickets for this process. */
export interface TicketSource {
  /** The directory of the box, or its name in a database. */
  readonly directory: string;
  /** Waits for tickets. */
  readonly arrivals: Arrivals;
  readonly pause: {
    /** Called before every claim, so it must be cheap. */
    isPaused(): Promise<boolean>;
    /** Returns undefined if the box is not paused. */
    find(): Promise<{ readonly reason?: string } | undefined>;
    /** Pauses the box, durably when it resolves. A second call replaces the reason. */
    begin(reason: string | undefined): Promise<void>;
    end(): Promise<void>;
  };
  /**
   * Returns two kinds of tickets to the queue: those of dead processes, and those that are due.
   * Called before every claim; the engine decides how often it really checks.
   */
  recover(): Promise<void>;
  /**
   * Claims the next ticket for a handler. On the way, settles tickets that no handler should see,
   * such as expired ones. Returns undefined if there is no ticket now, or if `signal` aborts.
   */
  claim(request: ClaimRequest, signal: AbortSignal): Promise<Settler | undefined>;
  /** Continues a parked claim. Throws CLAIM_LOST if it is no longer parked. */
  resume(claim: string, signal: AbortSignal): Promise<Settler>;
  /** Releases what the source keeps between claims. Called when no delivery is open any more. */
  close(): Promise<void>;
}

export function claimLost({ id, attempt }: { readonly id: string; readonly attempt: number }, cause?: unknown): Error {
  const message = `The claim of ticket ${id} (attempt ${attempt}) is gone: this process was silent for its lease, and the ticket returned to the queue. Leave it to the process that has it now.`;
  return holdfastError("CLAIM_LOST", message, { id, attempt }, cause);
}
