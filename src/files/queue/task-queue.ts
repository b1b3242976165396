// TaskQueue: a hand-off box whose tickets are the tasks of a tree. Any process on any machine may
// work on them.
import { isThere } from "../../durable/publish/directory.ts";
import type { Running, VerifyOptions, VerifyReport } from "../../common.ts";
import { openBox } from "../../handoff/box/open-box.ts";
import { BoxHandoff } from "../../handoff/handoff.ts";
import type { ConsumeOptions, Handler } from "../../handoff/model/consume-options.ts";
import type { TicketInfo, TicketState } from "../../handoff/model/handoff.ts";
import type { Published } from "../../handoff/model/publication.ts";
import { resetIfDamaged } from "../tree/damaged-record.ts";
import type { Tree } from "../tree/tree.ts";
import { isSetAsideReason, type GivenUp } from "./given-up.ts";
import { indexKey, keyOf, taskOf, type IndexTask, type Task } from "./task.ts";

/** Finished tickets are useless; a key is needed until no process can request the same task again. */
const retention = { archiveMs: 3_600_000, ledgerMs: 86_400_000 };
const open: readonly TicketState[] = ["incoming", "delayed", "processing"];

export interface QueuedTask {
  readonly id: string;
  readonly task: Task;
}

export class TaskQueue {
  readonly #tree: Tree;
  readonly #leaseMs: number | undefined;
  #opening: Promise<BoxHandoff> | undefined;

  constructor(tree: Tree, leaseMs: number | undefined) {
    this.#tree = tree;
    this.#leaseMs = leaseMs;
  }

  /** Publishes a ticket for this task, or returns the existing one. */
  async publish(task: Task, { delayMs }: { readonly delayMs?: number } = {}): Promise<Published> {
    const box = await this.#open();
    return await box.publish({ task: task.task }, { key: this.keyOf(task), meta: { ...task }, delayMs });
  }

  /**
   * Publishes the ticket of a change, or returns the id of the existing one. An `add` needs a ticket
   * to hold its lock; other changes get one if the log worker leaves them to the queue.
   */
  async publishChange(
    change: number,
    extra: Pick<IndexTask, "token" | "failures" | "deaths"> = {},
    options: { readonly delayMs?: number } = {},
  ): Promise<string> {
    const id = await this.#tree.changes.findId(change);
    const task = { task: "index", change, ...(id === undefined ? {} : { id }), ...extra } as const;
    const published = await this.publish(task, options);
    // The log worker was faster, and its ticket has no token: its worker would wait until the offer
    // lapses.
    if (published.duplicate && extra.token !== undefined) await this.#tree.endOffer(extra.token);
    return published.id;
  }

  /** Returns the state of the change's ticket; "damaged" if it is unreadable. */
  async stateOf(change: number): Promise<"none" | "damaged" | "whole"> {
    const ticket = await this.findByChange(change, await this.#tree.changes.findId(change));
    if (ticket?.damaged !== undefined) return "damaged";
    return ticket === undefined || ticket.state === "archive" ? "none" : "whole";
  }

  /** Tickets with the same key are one. */
  protected keyOf(task: Task): string | undefined {
    return keyOf(task);
  }

  async consume(handler: Handler, options: ConsumeOptions): Promise<Running> {
    return (await this.#open()).consume(handler, options);
  }

  /** Returns the ticket of the change with this id. */
  async findByChange(change: number, id: string | undefined): Promise<TicketInfo | undefined> {
    const box = await this.#open();
    // Tickets of older builds have no id.
    return (
      (await box.findByKey(indexKey({ change, ...(id === undefined ? {} : { id }) }))) ??
      (await box.findByKey(indexKey({ change })))
    );
  }

  async find(id: string): Promise<TicketInfo | undefined> {
    return await (await this.#open()).find(id);
  }

  /** Returns all tasks that are not done. */
  async unfinished(): Promise<QueuedTask[]> {
    const box = await this.#open();
    const found = new Map<string, QueuedTask>();
    // Twice: a ticket that is retried later returns to a state that was listed before.
    for (const state of [...open, ...open])
      for await (const { id, meta, damaged } of box.list(state))
        if (damaged === undefined) found.set(id, { id, task: taskOf(meta) });
    return [...found.values()];
  }

  /** Returns the tickets that no worker takes any more. */
  async givenUp(): Promise<GivenUp[]> {
    const found: GivenUp[] = [];
    // A process that only reads must not make the box.
    const { disk, layout } = this.#tree;
    if (this.#opening === undefined && !(await isThere(disk, `${layout.queue}/box.json`))) return found;
    for await (const { id, meta, damaged, history } of (await this.#open()).list("error")) {
      const reason = history.at(-1)?.reason ?? "";
      if (damaged === undefined) found.push({ id, task: taskOf(meta), reason, isSetAside: isSetAsideReason(reason) });
    }
    return found;
  }

  async verify(options: VerifyOptions): Promise<VerifyReport> {
    return await (await this.#open()).verify(options);
  }

  /** Retries a ticket that was given up. */
  async replay(id: string): Promise<void> {
    await (await this.#open()).replay({ from: "error", id });
  }

  /** Replays tickets that earlier builds gave up after five deaths of their workers, whatever the cause. */
  async replayLost(): Promise<void> {
    const box = await this.#open();
    const lost: string[] = [];
    for await (const { id, damaged, history } of box.list("error"))
      if (damaged === undefined && history.at(-1)?.outcome === "lost") lost.push(id);
    for (const id of lost) await box.replay({ from: "error", id });
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
    const [leaseMs, { ground, layout }] = [this.#leaseMs, this.#tree];
    // The record of the box has only its id, which nothing here needs. The tickets stay.
    const opened = await resetIfDamaged(this.#tree, `${layout.queue}/box.json`, () =>
      openBox(ground.ports, layout.queue, { leaseMs, ground }),
    );
    return new BoxHandoff(opened, { leaseMs, retention });
  }
}
