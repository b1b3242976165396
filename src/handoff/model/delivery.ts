// A claimed ticket as its handler sees it, and a claim that outlives its process.
import type { Body } from "../../common.ts";
import type { Files, PublishOptions } from "./arguments.ts";
import type { Manifest } from "./manifest.ts";

/** A box that a delivery can send to: a `Handoff`, or an object with its directory. */
export interface SendTarget {
  /** The absolute path of the box, or its location in a database. */
  readonly directory: string;
}

/**
 * A claimed ticket. Its files were checked against the manifest. Disposing of an unsettled delivery
 * returns the ticket to the queue, and the attempt does not count. After the claim is lost, every
 * method that changes something throws CLAIM_LOST.
 */
export interface Delivery extends Manifest, AsyncDisposable {
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Aborts with CLAIM_LOST as soon as this process knows that it lost the claim. */
  readonly signal: AbortSignal;
  /** Reads a file into memory. Throws a TypeError if the ticket has no file of that name. */
  bytes(name: string): Promise<Uint8Array>;
  /** Reads a file as UTF-8 text. Throws a TypeError if the ticket has no file of that name. */
  text(name: string): Promise<string>;
  /** Reads a file in chunks, in constant memory. Throws a TypeError if the ticket has no file of that name. */
  stream(name: string): AsyncIterable<Uint8Array>;
  /** Returns a path of the file, for programs that need one. Do not write to it. Throws CLAIM_LOST. */
  path(name: string): Promise<string>;
  /**
   * Stages an output file. It becomes visible with `ack`, in the same step as the result, or never.
   * Throws CLAIM_LOST and INVALID_NAME.
   */
  output(name: string, body: Body): Promise<void>;
  /**
   * Stages a ticket for another box, which `ack` publishes exactly once. Throws CLAIM_LOST,
   * INVALID_NAME, TOO_LARGE, and NOT_A_STORE if that box is not on the disk of this one.
   */
  send(box: SendTarget, files: Files, options?: PublishOptions): Promise<void>;
  /**
   * Replaces the progress note, which `find` and `list` return. Throws CLAIM_LOST, and a TypeError
   * if `note` is not JSON.
   */
  progress(note: unknown): Promise<void>;
  /**
   * Completes the ticket: commits `result`, outputs and sent tickets in one step. Throws
   * CLAIM_LOST, and a TypeError if `result` is not JSON.
   */
  ack(result?: unknown): Promise<void>;
  /**
   * Ends the attempt as failed; the ticket is delivered again after `delayMs` (default 0). Throws
   * CLAIM_LOST.
   */
  retry(options?: { delayMs?: number | undefined; reason?: string | undefined }): Promise<void>;
  /** Makes the ticket a dead letter. Throws CLAIM_LOST. */
  fail(reason: string): Promise<void>;
  /**
   * Returns the ticket to the queue; it can be claimed again after `delayMs`. Neither counts an
   * attempt nor records anything.
   * Throws CLAIM_LOST.
   */
  postpone(options: { delayMs: number }): Promise<void>;
}

/** A ticket whose claim is parked. */
export interface ParkedTicket extends Manifest {
  /** Identifies this claim, and no later claim of the same ticket: `<id>-<number>`. */
  readonly claim: string;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** When the ticket returns to the queue, by the server's clock. */
  readonly dueAt: Date;
  /** Paths of its files, by name. Do not write to them. */
  readonly paths: Readonly<Record<string, string>>;
}
