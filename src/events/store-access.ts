// The access that an event store gives to subscriptions, consumers and read models.
import type { Cancel } from "../common.ts";
import type { Ground } from "../durable/liveness/ground.ts";
import { directoryLeaseGround, type LeaseGround } from "../part/leases.ts";
import type { Ports } from "../ports/ports.ts";
import type { DerivedData } from "./log/derived-data.ts";
import { HeadReads } from "./log/head-reads.ts";
import { DerivedFiles } from "./log/derived-files.ts";
import { hexOf } from "./log/format/tip.ts";
import type { LogAccess } from "./log/log-access.ts";
import type { OpenedLog } from "./open/opened-log.ts";

export interface StoreAccessContext {
  readonly ports: Ports;
  readonly directory: string;
  readonly mayForget: boolean;
  /** Opens the log if necessary. */
  readonly open: () => Promise<OpenedLog>;
  readonly findOpen: () => OpenedLog | undefined;
}

export class StoreAccess implements LogAccess {
  readonly ports: Ports;
  readonly directory: string;
  readonly mayForget: boolean;
  /** An arrow function, so that a caller may pass it on alone. */
  readonly findChecksum = async (position: number): Promise<string | undefined> => {
    if (position === 0) return hexOf(0);
    const log = await this.#context.open();
    return (await log.advance()).position < position ? undefined : hexOf(await log.reader.checksumAt(position));
  };
  readonly #context: StoreAccessContext;
  readonly #looks = new HeadReads(() => this.#head());

  constructor(context: StoreAccessContext) {
    this.ports = context.ports;
    this.directory = context.directory;
    this.mayForget = context.mayForget;
    this.#context = context;
  }

  get ground(): Ground {
    return this.#open.files.ground;
  }

  get derived(): DerivedData {
    return new DerivedFiles(this.#open.files.ground, this.directory);
  }

  async openLeaseGround(): Promise<LeaseGround> {
    return directoryLeaseGround((await this.#context.open()).files.ground);
  }

  get mayLag(): boolean {
    return this.ports.disk.volume.kind !== "local";
  }

  async opened(): Promise<void> {
    await this.#context.open();
  }

  async waitBeyond(position: number, options?: Cancel): Promise<number> {
    return await (await this.#context.open()).growth.waitBeyond(position, options);
  }

  async headBeforeAppends(): Promise<number> {
    return await this.#looks.read();
  }

  /** Pending reads of the head. Appends wait for them, so that `consume(from: "head")` misses nothing. */
  get pendingHeadReads(): Promise<unknown> | undefined {
    return this.#looks.pending;
  }

  async tagChecksum(): Promise<string> {
    const log = await this.#context.open();
    await log.advance();
    return log.view.retags.checksum;
  }

  get #open(): OpenedLog {
    const log = this.#context.findOpen();
    if (log === undefined) throw new Error("The log is not open yet.");
    return log;
  }

  async #head(): Promise<number> {
    return (await (await this.#context.open()).publisher.tip()).position;
  }
}
