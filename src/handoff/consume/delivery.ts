// A claimed ticket in the hands of its handler: its files, its outputs, and how it ends.
import type { Body } from "../../common.ts";
import type { Box } from "../box/box.ts";
import { asJson, type Files, type PublishOptions } from "../model/arguments.ts";
import type { DeadLetter } from "../model/handoff.ts";
import type { Manifest, ManifestFile } from "../model/manifest.ts";
import type { LedgerEntry } from "../ledger/ledger.ts";
import { attemptOf } from "../model/ticket-name.ts";
import { isHoldfastError } from "../../errors.ts";
import { onAbort } from "../../durable/wait/on-abort.ts";
import type { Claimed } from "./claim.ts";
import { StagedOutputs } from "./outputs.ts";
import { describeParked, park, type ParkedTicket } from "./parked.ts";
import { readPayload } from "./payload-check.ts";
import { PayloadFiles } from "./payload-files.ts";
import { ProgressNote } from "./progress.ts";
import { archive, claimLost, commitResult, failForGood, giveBack, mustStillHave, retryLater } from "./settle.ts";

/** A box that a delivery can send to. */
export interface SendTarget {
  readonly directory: string;
}

/** Disposing of it unsettled gives it back without counting a failure. Its files were checked before it was handed out. */
export interface Delivery extends Manifest, AsyncDisposable {
  readonly attempt: number;
  /** Aborts with CLAIM_LOST. */
  readonly signal: AbortSignal;
  bytes(name: string): Promise<Uint8Array>;
  text(name: string): Promise<string>;
  stream(name: string): AsyncIterable<Uint8Array>;
  /** A real path for programs that need one. Read only. */
  path(name: string): Promise<string>;
  /** Staged; becomes visible with `ack`, in the same step as the result, or never. */
  output(name: string, body: Body): Promise<void>;
  /** A ticket for another box, committed with `ack`, exactly once. */
  send(box: SendTarget, files: Files, options?: PublishOptions): Promise<void>;
  /** For people that look: JSON. TypeError for what JSON does not have. */
  progress(note: unknown): Promise<void>;
  /** All four: CLAIM_LOST when the claim is gone. */
  ack(result?: unknown): Promise<void>;
  retry(options?: { delayMs?: number | undefined; reason?: string | undefined }): Promise<void>;
  fail(reason: string): Promise<void>;
  /** Goes back, and comes again after `delayMs`: its time had not come. Counts no attempt, and nothing is noted. */
  postpone(options: { delayMs: number }): Promise<void>;
}

/** What a delivery needs of the box beside the protocol. */
export interface DeliveryParts {
  readonly box: Box;
  readonly claim: Claimed;
  readonly send: (outputs: StagedOutputs, box: SendTarget, files: Files, options: PublishOptions) => Promise<void>;
  /** Publishes what a commit sends to other boxes. */
  readonly rollForward: (entry: LedgerEntry) => Promise<void>;
  /** Called once, when it was settled, given back or lost. */
  readonly onEnded: () => Promise<void>;
  /** Called when it went to the dead letters. */
  readonly onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
}

export class OpenDelivery {
  readonly claim: Claimed;
  readonly #parts: DeliveryParts;
  readonly #outputs: StagedOutputs;
  readonly #files: PayloadFiles;
  readonly #progress: ProgressNote;
  readonly #lost = new AbortController();
  readonly #stopListening: () => void = () => undefined;
  /** The last step that was begun to settle it. */
  #settling: Promise<void> | undefined;
  #state: "open" | "settling" | "ended" = "open";

  constructor(parts: DeliveryParts) {
    const { box, claim } = parts;
    this.#parts = parts;
    this.claim = claim;
    this.#outputs = new StagedOutputs(box, claim);
    this.#files = new PayloadFiles(box, claim);
    this.#progress = new ProgressNote(box, claim);
    const { session } = claim;
    if (session.isOver) this.#sessionEnded();
    else this.#stopListening = onAbort(session.signal, () => this.#sessionEnded());
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether it is settled, given back or lost. Waits for a step that was begun. */
  async hasEnded(): Promise<boolean> {
    await this.#settling?.catch(() => undefined);
    return this.#state === "ended";
  }

  /** TypeError for a result that JSON does not have: then it is not settled. */
  async ack(given?: unknown): Promise<void> {
    const result = given === undefined ? undefined : asJson("ack: result", given);
    await this.#settle(async () => {
      const { box, rollForward } = this.#parts;
      const entry = await commitResult(box, this.claim, result, this.#outputs);
      // It is done, whatever comes now. A ticket that stays behind goes back, and the next claim finishes this.
      await rollForward(entry)
        .then(() => archive(box, this.claim, entry))
        .catch(() => undefined);
    });
  }

  async retry(delayMs: number, reason: string): Promise<void> {
    await this.#settle(() => retryLater(this.#parts.box, this.claim, delayMs, reason));
  }

  async fail(reason: string): Promise<void> {
    await this.#settle(() => failForGood(this.#parts.box, this.claim, "fail", reason));
    const { id } = this.claim.name;
    this.#parts.onDeadLetter?.({ id, attempt: attemptOf(this.claim.name), outcome: "fail", reason });
  }

  async postpone(delayMs: number): Promise<void> {
    await this.#settle(async () => {
      mustStillHave(this.claim);
      if (!(await giveBack(this.#parts.box, this.claim, { delayMs }))) throw claimLost(this.claim);
    });
  }

  /** Parks it: another process can go on with it for `forMs`. */
  async park(forMs: number): Promise<ParkedTicket> {
    let parked: ParkedTicket | undefined;
    await this.#settle(async () => {
      const paths = await this.#files.keep();
      parked = describeParked(this.claim, await park(this.#parts.box, this.claim, forMs), paths);
    });
    return parked as ParkedTicket;
  }

  /**
   * Unless it has ended: the ticket goes back, and the attempt does not count. The handler, if it goes on, is
   * told that the claim is gone. If it cannot be moved now, the next round of recovery does it.
   */
  async giveBack(): Promise<void> {
    if (await this.hasEnded()) return;
    try {
      this.revoke();
      if (!this.claim.session.isOver) await giveBack(this.#parts.box, this.claim);
    } finally {
      await this.#end();
    }
  }

  /** From now on the handler is told that the claim is gone, whatever it does with its delivery. */
  revoke(cause?: unknown): void {
    this.#lost.abort(claimLost(this.claim, cause));
  }

  /** As a handler sees it. */
  asDelivery(): Delivery {
    const { box, claim } = this.#parts;
    const { manifest } = claim.ticket;
    const fileNamed = (name: string): ManifestFile => {
      const file = manifest.files.find((each) => each.name === name);
      if (file !== undefined) return file;
      const names = manifest.files.map((each) => each.name).join(", ");
      throw new TypeError(`Ticket ${manifest.id} has no file ${JSON.stringify(name)}; it has ${names}.`);
    };
    const bytes = async (name: string): Promise<Uint8Array> => {
      const pieces: Uint8Array[] = [];
      for await (const piece of readPayload(box, claim.ticket, fileNamed(name))) pieces.push(piece);
      return Buffer.concat(pieces);
    };
    const mustHave = (): void => {
      if (this.signal.aborted) throw claimLost(claim, this.signal.reason);
      this.#mustBeOpen();
    };
    return {
      ...manifest,
      attempt: attemptOf(claim.name),
      signal: this.signal,
      bytes,
      text: async (name) => Buffer.from(await bytes(name)).toString("utf8"),
      stream: (name) => readPayload(box, claim.ticket, fileNamed(name)),
      path: async (name) => {
        mustHave();
        return await this.#files.path(fileNamed(name));
      },
      output: async (name, body) => {
        mustHave();
        await this.#outputs.add(name, body);
      },
      send: async (target, files, options = {}) => {
        mustHave();
        await this.#parts.send(this.#outputs, target, files, options);
      },
      progress: async (given) => {
        const note = asJson("progress: note", given);
        mustHave();
        await this.#progress.write(note);
      },
      ack: async (result) => {
        mustHave();
        await this.ack(result);
      },
      retry: async ({ delayMs = 0, reason = "" } = {}) => {
        checkDelay("retry", delayMs);
        checkReason("retry", reason);
        mustHave();
        await this.retry(delayMs, reason);
      },
      fail: async (reason) => {
        checkReason("fail", reason);
        mustHave();
        await this.fail(reason);
      },
      postpone: async ({ delayMs }) => {
        checkDelay("postpone", delayMs);
        mustHave();
        await this.postpone(delayMs);
      },
      [Symbol.asyncDispose]: () => this.giveBack(),
    };
  }

  async #settle(how: () => Promise<void>): Promise<void> {
    this.#mustBeOpen();
    // Before the first step: a second call must not settle it in another way.
    this.#state = "settling";
    this.#settling = this.#finish(how);
    await this.#settling;
  }

  /** What fails for another reason than a lost claim, as on a full disk, can be tried again, or in another way. */
  async #finish(how: () => Promise<void>): Promise<void> {
    try {
      await how();
    } catch (error) {
      if (isHoldfastError(error, "CLAIM_LOST")) {
        this.revoke(error);
        await this.#end();
      } else this.#state = "open";
      throw error;
    }
    await this.#end();
  }

  /** What cannot be removed now goes with the session. */
  async #end(): Promise<void> {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#stopListening();
    await this.#progress.end();
    await this.#files.remove();
    await this.#outputs.discard();
    await this.#parts.onEnded();
  }

  #mustBeOpen(): void {
    // By the clocks, also just after a sleep.
    mustStillHave(this.claim);
    if (this.#state !== "open") throw new TypeError(`Ticket ${this.claim.name.id} was settled before.`);
  }

  #sessionEnded(): void {
    this.revoke(this.claim.session.signal.reason);
  }
}

/** Ten years: a time that a name can say. */
const delayMsMax = 315_360_000_000;

function checkDelay(call: string, delayMs: unknown): void {
  if (typeof delayMs === "number" && delayMs >= 0 && delayMs <= delayMsMax) return;
  throw new RangeError(
    `${call}: delayMs must be a number of milliseconds from 0 to ${delayMsMax}, not ${String(delayMs)}.`,
  );
}

function checkReason(call: string, reason: unknown): void {
  if (typeof reason !== "string") throw new TypeError(`${call}: the reason must be a text.`);
}
