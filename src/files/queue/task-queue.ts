// The queue of a tree: a hand-off box whose tickets are its tasks. Any process of any machine may work on them.
import type { Ground } from "../../durable/liveness/ground.ts";
import type { Running } from "../../common.ts";
import { openBox } from "../../handoff/box/open-box.ts";
import { BoxHandoff } from "../../handoff/handoff.ts";
import type { ConsumeOptions, Handler } from "../../handoff/consume/consumer.ts";
import type { TicketInfo, TicketState } from "../../handoff/model/handoff.ts";
import type { Published } from "../../handoff/publish/publisher.ts";
import { indexKey, keyOf, taskOf, type Task } from "./task.ts";

/** What is done is of no use; its key is needed until no process can ask for the same again. */
const retention = { archiveMs: 3_600_000, ledgerMs: 86_400_000 };
const open: readonly TicketState[] = ["incoming", "delayed", "processing"];

export interface QueuedTask {
  readonly id: string;
  readonly task: Task;
}

export class TaskQueue {
  readonly #ground: Ground;
  readonly #directory: string;
  readonly #leaseMs: number | undefined;
  #opening: Promise<BoxHandoff> | undefined;

  constructor(ground: Ground, directory: string, leaseMs: number | undefined) {
    this.#ground = ground;
    this.#directory = directory;
    this.#leaseMs = leaseMs;
  }

  /** The ticket of this task; the one that is there already, if there is one. */
  async publish(task: Task): Promise<Published> {
    const box = await this.#open();
    return await box.publish({ task: task.task }, { key: this.keyOf(task), meta: { ...task } });
  }

  /** What makes two tickets one. */
  protected keyOf(task: Task): string | undefined {
    return keyOf(task);
  }

  async consume(handler: Handler, options: ConsumeOptions): Promise<Running> {
    return (await this.#open()).consume(handler, options);
  }

  async findByChange(change: number): Promise<TicketInfo | undefined> {
    return await (await this.#open()).findByKey(indexKey(change));
  }

  async find(id: string): Promise<TicketInfo | undefined> {
    return await (await this.#open()).find(id);
  }

  /** All that is not done. */
  async unfinished(): Promise<QueuedTask[]> {
    const box = await this.#open();
    const found = new Map<string, QueuedTask>();
    // Twice: one that is tried again later goes back to a state that was listed before.
    for (const state of [...open, ...open])
      for await (const { id, meta, damaged } of box.list(state))
        if (damaged === undefined) found.set(id, { id, task: taskOf(meta) });
    return [...found.values()];
  }

  async waitFor(id: string, signal: AbortSignal | undefined): Promise<void> {
    await (await this.#open()).waitFor(id, { signal });
  }

  async collect(): Promise<void> {
    await (await this.#open()).collect();
  }

  async close(): Promise<void> {
    const box = await this.#opening?.catch(() => undefined);
    await box?.close();
  }

  async #open(): Promise<BoxHandoff> {
    this.#opening ??= this.#openBox();
    try {
      return await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  async #openBox(): Promise<BoxHandoff> {
    const leaseMs = this.#leaseMs;
    const opened = await openBox(this.#ground.ports, this.#directory, { leaseMs, ground: this.#ground });
    return new BoxHandoff(opened, { leaseMs, retention });
  }
}
