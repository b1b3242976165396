// Trials of one worker in a simulated world: it is killed, or its disk fails, at one of its calls. Then other
// processes come, and every ticket must find its end, once.
import { expect } from "vitest";
import type { Box } from "../../../src/handoff/box/box.ts";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import { findCommitted } from "../../../src/handoff/ledger/ledger.ts";
import { nfs, World, type Fault } from "../../sites/world.ts";
import { statesOf } from "./boxes.ts";

export const directory = "/box";
export const other = "/other";
export const leaseMs = 1_000;
/** An action that takes more steps of 20 ms hangs. */
const stepsMax = 2_000;

export const volumes = ["local", "share"] as const;
export type VolumeKind = (typeof volumes)[number];

export interface Trial {
  readonly what: string;
  /** Done before, by a process without trouble. */
  readonly prepare: (publisher: BoxHandoff) => Promise<void>;
  /** What the worker does that is killed or whose disk fails. */
  readonly run: (worker: BoxHandoff) => Promise<unknown>;
  /** Of the tickets; at the end each is in the ledger. */
  readonly keys: readonly string[];
  /** Whether the ticket may also end in `error`, with a reason. */
  readonly mayFail?: boolean;
}

export class TrialWorld {
  readonly world: World;
  readonly #volume: VolumeKind;
  /** What handlers were given: the key of each delivery, in order. */
  readonly handled: string[] = [];

  constructor(volume: VolumeKind) {
    this.#volume = volume;
    this.world = volume === "local" ? new World() : new World({ volume: nfs });
  }

  async open(process: string, at = directory): Promise<BoxHandoff> {
    const ports = this.world.ports(process, this.#volume === "local" ? "machine" : `machine of ${process}`);
    return new BoxHandoff(await this.step(openBox(ports, at, { leaseMs })), { leaseMs });
  }

  /** What is there before the worker comes; the other box, too: a worker makes none. */
  async prepare(trial: Trial): Promise<void> {
    const publisher = await this.open("publisher");
    await this.step(trial.prepare(publisher));
    await this.step(publisher.close());
    const clerk = await this.open("clerk", other);
    await this.step(clerk.close());
  }

  /** A process whose heart soon stands still. After `sleep` its clocks do, too: it does not know that it slept. */
  async openSleeper(process: string): Promise<{ readonly handoff: BoxHandoff; readonly sleep: () => void }> {
    const ports = this.world.ports(process, `machine of ${process}`, 2);
    let frozenMs: number | undefined;
    const clock = {
      ...ports.clock,
      monotonicMs: () => frozenMs ?? ports.clock.monotonicMs(),
      wallMs: () => frozenMs ?? ports.clock.wallMs(),
    };
    const opened = await this.step(openBox({ ...ports, clock }, directory, { leaseMs }));
    return { handoff: new BoxHandoff(opened, { leaseMs }), sleep: () => (frozenMs = this.world.nowMs) };
  }

  async openBox(process: string, at = directory): Promise<Box> {
    const ports = this.world.ports(process, this.#volume === "local" ? "machine" : `machine of ${process}`);
    return (await this.step(openBox(ports, at, { leaseMs }))).box;
  }

  /** Lets the time pass until `action` has ended. */
  async step<T>(action: Promise<T>): Promise<T> {
    let isOver = false;
    const over = action.finally(() => (isOver = true));
    over.catch(() => undefined);
    for (let steps = 0; steps < stepsMax && !isOver; steps++) await this.world.advance(20);
    if (!isOver) throw new Error("it hangs");
    return await over;
  }

  /** Works until every ticket has found its end. */
  async workOff(handoff: BoxHandoff): Promise<void> {
    const { disk } = this.world.ports("looker");
    const consumer = handoff.consume(async ({ key }) => void this.handled.push(key), { backoffMs: { min: 1, max: 1 } });
    consumer.done.catch(() => undefined);
    const isDone = async (): Promise<boolean> =>
      Object.keys(await statesOf(disk, directory)).every((state) => state === "archive" || state === "error");
    try {
      await this.step(
        (async () => {
          while (!(await isDone())) await this.world.ports("looker").clock.sleep(100);
        })(),
      );
    } catch (cause) {
      throw new Error(`stuck: ${JSON.stringify(await statesOf(disk, directory))}`, { cause });
    } finally {
      await this.step(consumer.stop());
    }
  }

  /** Each key was done once, with all that belongs to it; each ticket is at one place. */
  async check({ keys, mayFail = false }: Trial): Promise<void> {
    const { disk } = this.world.ports("looker");
    const { archive = [], error = [] } = await statesOf(disk, directory);
    const box = await this.openBox("auditor");
    if (mayFail && error.length > 0) {
      expect([archive.length, error.length], "archive and error").toEqual([0, 1]);
      const note = await disk.readFile(box.layout.note(error[0]!.slice(0, 36), "1"), 1000);
      expect(Buffer.from(note).toString()).toContain('"outcome":"fail"');
    } else {
      expect([archive.length, error.length], "archive and error").toEqual([keys.length, 0]);
      for (const key of keys) await this.#checkEntry(box, key);
    }
    await this.step(box.ground.close());
  }

  async #checkEntry(box: Box, key: string): Promise<void> {
    const { disk } = this.world.ports("looker");
    const entry = await this.step(findCommitted(box, box.layout.ledger(key, 0)));
    expect(entry?.committed.key).toBe(key);
    const { outputs = [], sent = [] } = entry?.committed ?? {};
    for (const { name } of outputs)
      expect(await disk.canOpen(`${entry?.directory}/outputs/${name}`), `output ${name}`).toBe(true);
    if (sent.length > 0) await this.#checkSent();
    // What was not committed was never sent.
    else expect(await statesOf(disk, other)).toEqual({});
  }

  /** A consumer of the other box gets it, once. */
  async #checkSent(): Promise<void> {
    const clerk = await this.open("clerk", other);
    const delivery = await this.step(clerk.take({ waitMs: 4 * leaseMs }));
    expect(await delivery?.text("b.txt")).toBe("an invoice");
    await this.step(delivery!.ack());
    expect(await this.step(clerk.take())).toBeUndefined();
    await this.step(clerk.close());
  }
}

/** How many calls `run` makes; each of them is a trial. */
export async function countCalls(volume: VolumeKind, trial: Trial): Promise<number> {
  const trials = new TrialWorld(volume);
  await trials.prepare(trial);
  const worker = await trials.open("worker");
  const before = trials.world.calls.length;
  await trials.step(trial.run(worker));
  return trials.world.calls.slice(before).filter(({ process }) => process === "worker").length;
}

/** The worker is killed at its call number `at`, and another process goes on. */
export async function killAt(volume: VolumeKind, trial: Trial, at: number): Promise<TrialWorld> {
  const trials = new TrialWorld(volume);
  await trials.prepare(trial);
  const worker = await trials.open("worker");
  await trials.world.killAtCall("worker", at, () => trial.run(worker));
  trials.world.kill("worker");
  const next = await trials.open("next");
  await trials.workOff(next);
  await trials.step(next.close());
  await trials.check(trial);
  return trials;
}

/** One call of the worker fails, or all from it on; then its disk is healed, and the worker itself goes on. */
export async function failAt(volume: VolumeKind, trial: Trial, fault: Omit<Fault, "process">): Promise<boolean> {
  const trials = new TrialWorld(volume);
  await trials.prepare(trial);
  const worker = await trials.open("worker");
  const hasCome = await trials.world.withFault({ process: "worker", ...fault }, async () => {
    await trials.step(trial.run(worker)).catch(() => undefined);
  });
  await trials.workOff(worker);
  await trials.step(worker.close());
  await trials.check(trial);
  return hasCome;
}
