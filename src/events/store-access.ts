// The access that an event store gives to subscriptions, consumers and read models.
import type { Cancel } from "../common.ts";
import type { Ground } from "../durable/liveness/ground.ts";
import type { Ports } from "../ports/ports.ts";
import { hexOf } from "./log/format/tip.ts";
import type { LogAccess } from "./log/log-access.ts";
import type { OpenedLog } from "./open/opened-log.ts";

export interface StoreAccessParts {
  readonly ports: Ports;
  readonly directory: string;
  readonly mayForget: boolean;
  /** Opens the log if need be. */
  readonly open: () => Promise<OpenedLog>;
  readonly findOpen: () => OpenedLog | undefined;
}

export class StoreAccess implements LogAccess {
  readonly ports: Ports;
  readonly directory: string;
  readonly mayForget: boolean;
  /** Bound: a caller may take the function alone. */
  readonly findChecksum = async (position: number): Promise<string | undefined> => {
    if (position === 0) return hexOf(0);
    const log = await this.#parts.open();
    return (await log.advance()).position < position ? undefined : hexOf(await log.reader.checksumAt(position));
  };
  readonly #parts: StoreAccessParts;
  #looks: Promise<unknown> | undefined;

  constructor(parts: StoreAccessParts) {
    this.ports = parts.ports;
    this.directory = parts.directory;
    this.mayForget = parts.mayForget;
    this.#parts = parts;
  }

  get ground(): Ground {
    const log = this.#parts.findOpen();
    if (log === undefined) throw new Error("The log is not open yet.");
    return log.files.ground;
  }

  async opened(): Promise<void> {
    await this.#parts.open();
  }

  async waitBeyond(position: number, options?: Cancel): Promise<number> {
    return await (await this.#parts.open()).growth.waitBeyond(position, options);
  }

  async headBeforeAppends(): Promise<number> {
    const head = this.#head();
    const looks = Promise.allSettled([this.#looks, head]);
    this.#looks = looks;
    await looks;
    if (this.#looks === looks) this.#looks = undefined;
    return await head;
  }

  /** Reads of the head that appends wait for, so that `consume(from: "head")` misses nothing. */
  get looks(): Promise<unknown> | undefined {
    return this.#looks;
  }

  async tagChecksum(): Promise<string> {
    const log = await this.#parts.open();
    await log.advance();
    return log.view.retags.checksum;
  }

  async #head(): Promise<number> {
    return (await (await this.#parts.open()).publisher.tip()).position;
  }
}
