// The hand-off as a program holds it: what it calls, in the order in which a call passes through.
import { posix } from "node:path";
import type { Cancel, Running } from "../common.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { Leases } from "../part/leases.ts";
import { Loop, Loops } from "../part/loop.ts";
import type { Box } from "./box/box.ts";
import { openBox, type OpenedBox } from "./box/open-box.ts";
import { Arrivals } from "./consume/arrivals.ts";
import type { Claimed } from "./consume/claim.ts";
import { attemptsDefault, consume, type ConsumeOptions, type Handler } from "./consume/consumer.ts";
import type { Delivery, OpenDelivery, SendTarget } from "./consume/delivery.ts";
import type { StagedOutputs } from "./consume/outputs.ts";
import { readPayload } from "./consume/payload-check.ts";
import { publishSent } from "./consume/sent.ts";
import { DeliverySource } from "./consume/source.ts";
import { checkPublication, type Files, type PublishOptions } from "./model/arguments.ts";
import type { ManifestFile } from "./model/manifest.ts";
import { formatTicketName, unrankedOf } from "./model/ticket-name.ts";
import { publish, type Published } from "./publish/publisher.ts";
import { enterDue } from "./recover/due.ts";
import { reap, recover } from "./recover/reap.ts";

export interface HandoffOptions {
  /** A worker that is silent for this long is dead; its tickets go back. Default 30_000. */
  leaseMs?: number | undefined;
  durability?: "fsync" | "none" | undefined;
  limits?: { inFlight?: number | undefined } | undefined;
}

/** How many tickets of `publishMany` are on their way at the same time, so that they share syncs. */
const windowSize = 64;

export class BoxHandoff implements AsyncDisposable {
  readonly directory: string;
  readonly #box: Box;
  readonly #ownsGround: boolean;
  readonly #leaseMs: number;
  readonly #leases: Leases;
  readonly #loops: Loops;
  readonly #arrivals: Arrivals;
  readonly #source: DeliverySource;
  /** Boxes that deliveries have sent tickets to. */
  readonly #others = new Map<string, Promise<OpenedBox>>();
  #recoveredAtMs = -Infinity;
  #nextDueMs = 0;
  #closing: Promise<void> | undefined;

  constructor({ box, ownsGround }: OpenedBox, { leaseMs = 30_000, limits = {} }: HandoffOptions = {}) {
    this.directory = box.layout.directory;
    this.#box = box;
    this.#ownsGround = ownsGround;
    this.#leaseMs = leaseMs;
    this.#leases = new Leases(this.directory, async () => box.ground);
    this.#loops = new Loops(box.ground.ports.clock, this.directory);
    this.#arrivals = new Arrivals(box);
    this.#source = new DeliverySource({
      box,
      leases: this.#leases,
      inFlightMax: limits.inFlight,
      rollForward: (entry) => publishSent(box, entry, (directory) => this.#openOther(directory)),
      materialise: (claim, file) => this.#materialise(claim, file),
      send: (outputs, target, files, options) => this.#send(outputs, target, files, options),
      note: async () => undefined,
    });
  }

  async publish(files: Files, options: PublishOptions = {}): Promise<Published> {
    const publication = checkPublication(files, options);
    this.#mustBeOpen();
    options.signal?.throwIfAborted();
    const published = await publish(this.#box, publication);
    this.#arrivals.wakeAll();
    return published;
  }

  /** Shares the syncs; yields in the order given. A ticket that fails ends the iteration when its turn comes; the others that were begun are published. */
  async *publishMany(
    items: Iterable<{ files: Files } & PublishOptions> | AsyncIterable<{ files: Files } & PublishOptions>,
    { signal }: Cancel = {},
  ): AsyncGenerator<Published> {
    const begun: Promise<Published>[] = [];
    try {
      for await (const { files, ...options } of items) {
        signal?.throwIfAborted();
        const publishing = this.publish(files, { signal, ...options });
        publishing.catch(() => undefined);
        begun.push(publishing);
        while (begun.length >= windowSize) yield await (begun.shift() as Promise<Published>);
      }
      while (begun.length > 0) yield await (begun.shift() as Promise<Published>);
    } finally {
      await Promise.allSettled(begun);
    }
  }

  consume(handler: Handler, options: ConsumeOptions = {}): Running {
    const { clock, random } = this.#box.ground.ports;
    const next = (attempts: number, stopping: AbortSignal): Promise<OpenDelivery | undefined> =>
      this.#next(attempts, Infinity, stopping);
    return new Loop(this.#loops, (signals) => consume({ clock, random, next }, handler, options, signals), {
      signal: options.signal,
    });
  }

  async take({ waitMs = 0, signal }: Cancel & { waitMs?: number | undefined } = {}): Promise<Delivery | undefined> {
    this.#mustBeOpen();
    signal?.throwIfAborted();
    const delivery = await this.#next(attemptsDefault, waitMs, signal ?? new AbortController().signal);
    signal?.throwIfAborted();
    return delivery?.asDelivery();
  }

  async *deliveries({ signal }: Cancel = {}): AsyncGenerator<Delivery> {
    for (;;) {
      const delivery = await this.take({ waitMs: Infinity, signal });
      if (delivery === undefined) return;
      yield delivery;
    }
  }

  /** Stops its loops, gives back what it has in hand, and leaves. */
  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await this.#loops.close();
    await this.#leases.close();
    const session = await this.#box.ground.session().catch(() => undefined);
    if (session !== undefined) await recover(this.#box, session.holder.id);
    for (const opening of this.#others.values()) {
      const other = await opening.catch(() => undefined);
      if (other?.ownsGround === true) await other.box.ground.close();
    }
    if (this.#ownsGround) await this.#box.ground.close();
  }

  async #next(attempts: number, waitMs: number, signal: AbortSignal): Promise<OpenDelivery | undefined> {
    const { clock } = this.#box.ground.ports;
    const untilMs = clock.monotonicMs() + waitMs;
    const look = async (): Promise<OpenDelivery | undefined> => {
      this.#mustBeOpen();
      await this.#recoverNowAndThen();
      if (await this.#isPaused()) return undefined;
      try {
        return await this.#source.next(attempts, signal);
      } catch (error) {
        // This process slept: it goes on in a new session.
        if (isHoldfastError(error, "LOCK_LOST", "CLAIM_LOST")) return undefined;
        throw error;
      }
    };
    return await this.#arrivals.first(look, untilMs, signal);
  }

  /** Each quarter of a lease what the dead had in hand goes back; and what is due comes. */
  async #recoverNowAndThen(): Promise<void> {
    const nowMs = this.#box.ground.ports.clock.monotonicMs();
    if (nowMs - this.#recoveredAtMs >= this.#leaseMs / 4) {
      this.#recoveredAtMs = nowMs;
      await reap(this.#box);
      this.#nextDueMs = 0;
    }
    if ((await this.#box.nowMs()) >= this.#nextDueMs)
      this.#nextDueMs = Math.min(await enterDue(this.#box), await this.#soon());
  }

  /** Another process may have delayed a ticket meanwhile. */
  async #soon(): Promise<number> {
    return (await this.#box.nowMs()) + 250;
  }

  async #isPaused(): Promise<boolean> {
    return await this.#box.disk.canOpen(this.#box.layout.pauseRecord);
  }

  async #openOther(directory: string): Promise<Box> {
    if (directory === this.directory) return this.#box;
    let opening = this.#others.get(directory);
    if (opening === undefined) {
      opening = openBox(this.#box.ground.ports, directory, { leaseMs: this.#leaseMs, isSynced: this.#box.isSynced });
      this.#others.set(directory, opening);
      opening.catch(() => this.#others.delete(directory));
    }
    return (await opening).box;
  }

  async #send(outputs: StagedOutputs, target: SendTarget, files: Files, options: PublishOptions): Promise<void> {
    const { bodies } = checkPublication(files, options);
    const { signal: _signal, ...rest } = options;
    await outputs.send(posix.relative(this.directory, target.directory), bodies, rest);
  }

  async #materialise(claim: Claimed, file: ManifestFile): Promise<string> {
    const directory = `${await this.#box.staging(claim.session)}/${formatTicketName(unrankedOf(claim.name)).replace(/\.json$/, "-files")}`;
    const path = `${directory}/${file.name}`;
    if (await this.#box.disk.canOpen(path)) return path;
    await this.#box.disk.mkdir(directory).catch(() => undefined);
    const pieces: Uint8Array[] = [];
    for await (const piece of readPayload(this.#box, claim.ticket, file)) pieces.push(piece);
    await this.#box.disk.createFile(path, Buffer.concat(pieces), { sync: false });
    return path;
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw holdfastError("CLOSED", `${this.directory} was closed.`, {});
  }
}
