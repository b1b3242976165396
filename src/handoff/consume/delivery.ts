// A claimed ticket in the hands of its handler: its files, its outputs, and how it ends.
import type { Body } from "../../common.ts";
import type { Box } from "../box/box.ts";
import type { Files, PublishOptions } from "../model/arguments.ts";
import type { Manifest, ManifestFile } from "../model/manifest.ts";
import type { LedgerEntry } from "../ledger/ledger.ts";
import { attemptOf } from "../model/ticket-name.ts";
import type { Claimed } from "./claim.ts";
import { StagedOutputs } from "./outputs.ts";
import { readPayload } from "./payload-check.ts";
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
  progress(note: unknown): Promise<void>;
  /** All three: CLAIM_LOST when the claim is gone. */
  ack(result?: unknown): Promise<void>;
  retry(options?: { delayMs?: number | undefined; reason?: string | undefined }): Promise<void>;
  fail(reason: string): Promise<void>;
}

/** What a delivery needs of the box beside the protocol. */
export interface DeliveryParts {
  readonly box: Box;
  readonly claim: Claimed;
  /** Puts the contents of a small ticket into a file of this session, for programs that need a path. */
  readonly materialise: (claim: Claimed, file: ManifestFile) => Promise<string>;
  readonly send: (outputs: StagedOutputs, box: SendTarget, files: Files, options: PublishOptions) => Promise<void>;
  readonly note: (claim: Claimed, progress: unknown) => Promise<void>;
  /** Publishes what a commit sends to other boxes. */
  readonly rollForward: (entry: LedgerEntry) => Promise<void>;
  /** Called once, when it was settled or given back. */
  readonly onSettled: () => void;
}

export class OpenDelivery {
  readonly claim: Claimed;
  readonly #parts: DeliveryParts;
  readonly #outputs: StagedOutputs;
  readonly #lost = new AbortController();
  #isSettled = false;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    this.claim = parts.claim;
    this.#outputs = new StagedOutputs(parts.box, parts.claim);
    const { session } = parts.claim;
    if (session.isOver) this.#lose();
    else session.signal.addEventListener("abort", this.#lose, { once: true });
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  async ack(result?: unknown): Promise<void> {
    await this.#settle(async () => {
      const { box, rollForward } = this.#parts;
      const entry = await commitResult(box, this.claim, result, this.#outputs);
      await rollForward(entry);
      await archive(box, this.claim, entry);
    });
  }

  async retry(delayMs: number, reason: string): Promise<void> {
    await this.#settle(() => retryLater(this.#parts.box, this.claim, delayMs, reason));
  }

  async fail(reason: string): Promise<void> {
    await this.#settle(() => failForGood(this.#parts.box, this.claim, "fail", reason));
  }

  async giveBack(): Promise<void> {
    if (this.#isSettled) return;
    await this.#settle(async () => void (await giveBack(this.#parts.box, this.claim)));
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
    return {
      ...manifest,
      attempt: attemptOf(claim.name),
      signal: this.signal,
      bytes,
      text: async (name) => Buffer.from(await bytes(name)).toString("utf8"),
      stream: (name) => readPayload(box, claim.ticket, fileNamed(name)),
      path: async (name) => {
        const file = fileNamed(name);
        if (claim.ticket.inline === undefined) return `${box.layout.payload(manifest.id)}/${name}`;
        return await this.#parts.materialise(claim, file);
      },
      output: async (name, body) => {
        this.#mustBeOpen();
        await this.#outputs.add(name, body);
      },
      send: async (target, files, options = {}) => {
        this.#mustBeOpen();
        await this.#parts.send(this.#outputs, target, files, options);
      },
      progress: async (note) => {
        this.#mustBeOpen();
        await this.#parts.note(claim, note);
      },
      ack: (result) => this.ack(result),
      retry: ({ delayMs = 0, reason = "" } = {}) => this.retry(delayMs, reason),
      fail: (reason) => this.fail(reason),
      [Symbol.asyncDispose]: () => this.giveBack(),
    };
  }

  async #settle(how: () => Promise<void>): Promise<void> {
    this.#mustBeOpen();
    // Before the first step: a second call must not settle it in another way.
    this.#isSettled = true;
    try {
      await how();
    } finally {
      this.claim.session.signal.removeEventListener("abort", this.#lose);
      this.#parts.onSettled();
    }
  }

  #mustBeOpen(): void {
    if (this.#isSettled) throw new TypeError(`Ticket ${this.claim.name.id} was settled before.`);
    mustStillHave(this.claim);
  }

  readonly #lose = (): void => this.#lost.abort(claimLost(this.claim, this.claim.session.signal.reason));
}
