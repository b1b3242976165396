// A publish of which one disk call fails, and what must hold of its answer: published once, not published and
// nothing left, or settled by the same key.
import { expect } from "vitest";
import { isHoldfastError } from "../../../src/errors.ts";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import type { PublishOptions } from "../../../src/handoff/model/arguments.ts";
import { local, nfs, World, type Fault } from "../../sites/world.ts";
import { drain, filesIn } from "./opened-box.ts";

const leaseMs = 3_600_000;
/** An action that takes more steps of 20 ms hangs. */
const stepsMax = 3000;
const large = "x".repeat(65 * 1024);

const once = ["EIO", "ENOSPC", "EACCES", "ESTALE"].map((label) => ({ label, lasting: false }));
const forGood = ["EIO", "ENOSPC"].map((label) => ({ label, lasting: true }));
const lost = ["done, but the reply is lost", "done, and the repeated request fails"].map((label) => ({
  label,
  lasting: false,
}));
export const faults: readonly Pick<Fault, "label" | "lasting">[] = [...once, ...forGood, ...lost];

export const works: readonly [what: string, files: Readonly<Record<string, string>>, options: PublishOptions][] = [
  ["a small ticket with a key", { a: "x" }, { key: "k" }],
  ["a large ticket without a key", { a: large, b: "y" }, {}],
  ["a ticket of a group, with a key", { a: large }, { key: "k", group: "g" }],
];

/** An action of a simulated world, whose time passes meanwhile. */
async function mustEnd<T>(world: World, action: Promise<T>): Promise<T> {
  let isOver = false;
  const over = action.finally(() => (isOver = true));
  over.catch(() => undefined);
  for (let step = 0; step < stepsMax && !isOver; step++) await world.advance(20);
  if (!isOver) throw new Error("it hangs");
  return await over;
}

/** True when it came to that call. */
async function attempt([, files, options]: (typeof works)[number], fault: Fault, isShare: boolean): Promise<boolean> {
  const world = new World({ volume: isShare ? nfs : local });
  const step = <T>(action: Promise<T>): Promise<T> => mustEnd(world, action);
  const open = async (process: string): Promise<BoxHandoff> => {
    const ports = world.ports(process, isShare ? `machine of ${process}` : "machine");
    return new BoxHandoff(await openBox(ports, "/box", { leaseMs }));
  };
  const ada = await step(open("ada"));
  let told: string | undefined;
  const hasCome = await world.withFault(fault, async () => {
    try {
      await step(ada.publish(files, options));
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      told = error.code;
    }
  });
  try {
    if (fault.label === "ENOSPC" && told !== undefined) expect(told).toMatch(/^(DISK_FULL|OUTCOME_UNKNOWN)$/);
    const disk = world.ports("watcher").disk;
    const bea = await step(open("bea"));
    if (told !== undefined && told !== "OUTCOME_UNKNOWN") {
      expect(await step(drain(bea)), "what was not published").toEqual([]);
      // A disk that fails for good lets nothing be removed: the next publish does it.
      if (!fault.lasting)
        for (const place of ["staging", "data"]) expect(await step(filesIn(disk, `/box/${place}`))).toEqual([]);
    }
    // The same key settles what is unknown; without a key one more ticket is what the caller asked for.
    const again = await step(ada.publish(files, options));
    const taken = await step(drain(bea));
    if (options.key !== undefined) expect(taken).toMatchObject([{ id: again.id, files }]);
    else expect(taken.length).toBe(told === undefined ? 2 : told === "OUTCOME_UNKNOWN" ? taken.length : 1);
    expect(await step(filesIn(disk, "/box/staging"))).toEqual([]);
    const payloads = (await step(filesIn(disk, "/box/data"))).length;
    expect(payloads, "payloads without a ticket").toBe(
      files.a === large ? taken.length * Object.keys(files).length : 0,
    );
    await step(bea.close());
    await step(ada.close());
  } catch (cause) {
    throw new Error(`told ${told} at call ${fault.at} (${world.spoiled.slice(0, 3).join("; ")})`, { cause });
  }
  return hasCome;
}

/** The calls after which what was told does not hold. */
export async function findFailures(
  work: (typeof works)[number],
  { label, lasting }: Pick<Fault, "label" | "lasting">,
  isShare: boolean,
): Promise<string[]> {
  const failures: string[] = [];
  let at = 1;
  for (; at < 200 && failures.length < 5; at++)
    try {
      if (!(await attempt(work, { process: "ada", at, label, lasting }, isShare))) break;
    } catch (error) {
      const { message, cause } = error as Error;
      failures.push(`${message}: ${cause instanceof Error ? cause.message.split("\n")[0] : String(cause)}`);
    }
  expect(at, "calls of a publish").toBeGreaterThan(failures.length > 0 ? 0 : 10);
  return failures;
}
