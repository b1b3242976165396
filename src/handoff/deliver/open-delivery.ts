// A delivery in progress: what its handler may do with it, and how it ends.
import { isHoldfastError } from "../../errors.ts";
import { onAbort } from "../../durable/wait/on-abort.ts";
import { readWhole } from "../../part/read-chunks.ts";
import { signal } from "../../telemetry/signals.ts";
import { traceMethods } from "../../telemetry/trace.ts";
import { asJson } from "../model/arguments.ts";
import type { Delivery, ParkedTicket } from "../model/delivery.ts";
import type { DeadLetter } from "../model/handoff.ts";
import type { ManifestFile } from "../model/manifest.ts";
import { claimLost, type Settler } from "./settler.ts";
import { tracedDeliveryMethods } from "./traced-methods.ts";

export interface OpenDeliveryOptions {
  /** The directory of the box, or its name in a database. */
  readonly directory: string;
  /** Called once, after the delivery was settled, given back or lost. */
  readonly onEnded: (delivery: OpenDelivery) => void;
  readonly onDeadLetter: (ticket: DeadLetter) => void;
}

export class OpenDelivery {
  static {
    traceMethods(this, tracedDeliveryMethods);
  }

  readonly directory: string;
  readonly #settler: Settler;
  readonly #onDeadLetter: (ticket: DeadLetter) => void;
  /** Why the claim is lost; undefined while it is held. */
  #lost: Error | undefined;
  /** Created when a handler asks for its signal. */
  #aborting: AbortController | undefined;
  #stopListening: () => void = () => undefined;
  /** The last attempt to settle the delivery. */
  #settling: Promise<unknown> | undefined;
  #state: "open" | "settling" | "ended" = "open";
  readonly #onEnded: () => void;

  constructor(settler: Settler, { directory, onEnded, onDeadLetter }: OpenDeliveryOptions) {
    this.directory = directory;
    this.#settler = settler;
    this.#onDeadLetter = onDeadLetter;
    this.#onEnded = () => onEnded(this);
  }

  get id(): string {
    return this.#settler.manifest.id;
  }

  get attempt(): number {
    return this.#settler.attempt;
  }

  get signal(): AbortSignal {
    if (this.#aborting === undefined) {
      this.#aborting = new AbortController();
      const { session } = this.#settler;
      const onSessionEnd = (): void => this.revoke(session.signal.reason);
      if (this.#lost !== undefined) this.#aborting.abort(this.#lost);
      else if (this.#state !== "ended" && session.isOver) onSessionEnd();
      else if (this.#state !== "ended") this.#stopListening = onAbort(session.signal, onSessionEnd);
    }
    return this.#aborting.signal;
  }

  /**
   * True if the delivery was settled, given back or lost. Waits for an attempt to settle it that is
   * in progress.
   */
  async hasEnded(): Promise<boolean> {
    await this.#settling?.catch(() => undefined);
    return this.#state === "ended";
  }

  /** Throws a TypeError for a result that JSON cannot represent; the delivery then stays open. */
  async ack(given?: unknown): Promise<void> {
    const result = given === undefined ? undefined : asJson("ack: result", given);
    await this.#settle(() => this.#settler.commit(result));
  }

  async retry(delayMs: number, reason: string): Promise<void> {
    await this.#settle(() => this.#settler.retry(delayMs, reason));
  }

  async fail(reason: string): Promise<void> {
    await this.#settle(() => this.#settler.fail(reason));
    this.#onDeadLetter({ id: this.id, attempt: this.attempt, outcome: "fail", reason });
  }

  async postpone(delayMs: number): Promise<void> {
    await this.#settle(async () => {
      if (!(await this.#settler.giveBack(delayMs))) throw this.#claimLost();
    });
  }

  /** Parks the claim: another process can continue with it for `forMs`. */
  async park(forMs: number): Promise<ParkedTicket> {
    return await this.#settle(() => this.#settler.park(forMs));
  }

  /**
   * Returns the ticket to the queue unless the delivery has ended; the attempt does not count. If
   * the handler continues, its calls throw CLAIM_LOST. If the ticket cannot be moved now, the next
   * recovery moves it.
   */
  async giveBack(): Promise<void> {
    if (await this.hasEnded()) return;
    try {
      this.revoke();
      if (!this.#settler.session.isOver) await this.#settler.giveBack(0);
    } finally {
      await this.#end();
    }
  }

  /** From now on, every call of the handler on its delivery throws CLAIM_LOST. */
  revoke(cause?: unknown): void {
    if (this.#lost === undefined && isHoldfastError(cause, "CLAIM_LOST", "LOCK_LOST")) {
      const { directory: location, id, attempt } = this;
      signal("holdfast:ticket.lost", () => ({ location, id, attempt, error: cause }));
    }
    this.#lost ??= this.#claimLost(cause);
    this.#aborting?.abort(this.#lost);
  }

  /** Returns the delivery as a handler sees it. */
  asDelivery(): Delivery {
    const { manifest, attempt, payload, outputs } = this.#settler;
    const fileNamed = (name: string): ManifestFile => {
      const file = manifest.files.find((each) => each.name === name);
      if (file !== undefined) return file;
      const names = manifest.files.map((each) => each.name).join(", ");
      throw new TypeError(`Ticket ${manifest.id} has no file ${JSON.stringify(name)}; it has ${names}.`);
    };
    const bytes = async (name: string): Promise<Buffer> => await readWhole(payload.read(fileNamed(name)));
    const mustHave = (): void => {
      if (this.#lost !== undefined) throw this.#claimLost(this.#lost);
      this.#mustBeOpen();
    };
    const signal = (): AbortSignal => this.signal;
    return {
      ...manifest,
      attempt,
      get signal() {
        return signal();
      },
      bytes,
      text: async (name) => (await bytes(name)).toString("utf8"),
      stream: (name) => payload.read(fileNamed(name)),
      path: async (name) => {
        mustHave();
        return await payload.path(fileNamed(name));
      },
      output: async (name, body) => {
        mustHave();
        await outputs.add(name, body);
      },
      send: async (target, files, options = {}) => {
        mustHave();
        await outputs.send(target, files, options);
      },
      progress: async (given) => {
        const note = asJson("progress: note", given);
        mustHave();
        await this.#settler.progress(note);
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

  async #settle<T>(how: () => Promise<T>): Promise<T> {
    this.#mustBeOpen();
    // Set before the first step: a concurrent second call must not settle the delivery in another
    // way.
    this.#state = "settling";
    const settling = this.#finish(how);
    this.#settling = settling;
    return await settling;
  }

  /**
   * After a failure other than a lost claim, such as a full disk, the caller can try again or
   * settle the delivery in another way.
   */
  async #finish<T>(how: () => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await how();
    } catch (error) {
      if (isHoldfastError(error, "CLAIM_LOST")) {
        this.revoke(error);
        await this.#end();
      } else this.#state = "open";
      throw error;
    }
    await this.#end();
    return result;
  }

  async #end(): Promise<void> {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#stopListening();
    try {
      await this.#settler.end();
    } finally {
      this.#onEnded();
    }
  }

  #mustBeOpen(): void {
    const { session } = this.#settler;
    if (session.isOver) throw this.#claimLost(session.signal.reason);
    if (this.#state !== "open") throw new TypeError(`Ticket ${this.id} is already settled.`);
  }

  #claimLost(cause?: unknown): Error {
    return claimLost(this, cause);
  }
}

/** Ten years. Such a due time fits into a ticket's file name. */
const delayMsMax = 315_360_000_000;

function checkDelay(call: string, delayMs: unknown): void {
  if (typeof delayMs === "number" && delayMs >= 0 && delayMs <= delayMsMax) return;
  throw new RangeError(
    `${call}: delayMs must be a number of milliseconds from 0 to ${delayMsMax}, not ${String(delayMs)}.`,
  );
}

function checkReason(call: string, reason: unknown): void {
  if (typeof reason !== "string") throw new TypeError(`${call}: the reason must be a string.`);
}
