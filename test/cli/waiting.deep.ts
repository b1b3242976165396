// Commands that wait for another process say so on stderr: for what, for whom, and how it ends.
import { join } from "node:path";
import { hostname } from "node:os";
import { describe, expect, test } from "vitest";
import { makeScratch } from "../sites/scratch.ts";
import { holdfast, HoldfastProcess } from "./holdfast-process.ts";

const stay = ["--", process.execPath, "-e", `console.log("in"); process.stdin.resume()`];

/** A program that has the turn to write in a log, says its pid, and stays until its input ends. */
const writing = (directory: string): readonly string[] => [
  "--",
  process.execPath,
  "--input-type=module",
  "-e",
  `import { openStoreLock } from ${JSON.stringify(new URL("../../dist/locks/index.js", import.meta.url).href)};
  const lock = await openStoreLock(${JSON.stringify(directory)});
  await lock.acquire();
  console.log(process.pid);
  process.stdin.resume().on("end", () => process.exit());`,
];

interface Wait {
  /** Holds what the others wait for until its input ends. */
  readonly holder: (directory: string) => readonly string[];
  readonly prepare?: (directory: string) => readonly string[];
  readonly command: (directory: string) => readonly string[];
  readonly what: (directory: string) => string;
  readonly ends: string;
}

const lease = "It is free when that process releases it or ends, or is silent for its lease of";
const waits: Readonly<Record<string, Wait>> = {
  "run in a store": {
    holder: (directory) => ["run", "--store", directory, "--lock", "stock", ...stay],
    command: (directory) => ["run", "--store", directory, "--lock", "stock", "--", "true"],
    what: (directory) => join(directory, "files", "stock"),
    ends: lease,
  },
  "run with a semaphore file": {
    holder: (directory) => ["run", "--semaphore", join(directory, "a.lock"), ...stay],
    command: (directory) => ["run", "--semaphore", join(directory, "a.lock"), "--", "true"],
    what: (directory) => join(directory, "a.lock"),
    ends: "or when its lock file is stale. Now its holder, process",
  },
  "semaphore acquire": {
    holder: (directory) => ["run", "--semaphore", join(directory, "a.lock"), ...stay],
    command: (directory) => ["semaphore", "acquire", join(directory, "a.lock"), "--pid", String(process.pid)],
    what: (directory) => join(directory, "a.lock"),
    ends: "or when its lock file is stale",
  },
  "events append": {
    prepare: (directory) => ["events", "append", directory, "--type", "A"],
    holder: (directory) => ["run", "--semaphore", join(directory, "any.lock"), ...writing(directory)],
    command: (directory) => ["events", "append", directory, "--type", "B", "--timeout", "1m"],
    what: (directory) => `the turn to write in ${directory}`,
    ends: "It is free when that process releases it or ends.",
  },
  "files write": {
    prepare: (directory) => ["init", directory],
    holder: (directory) => ["run", "--store", directory, "--lock", "notes/plan.md", ...stay],
    command: (directory) => ["files", "write", directory, "notes/plan.md", "--timeout", "1m"],
    what: () => "a lock on notes/plan.md",
    ends: lease,
  },
};

describe("after a second on stderr stands what is waited for, who holds it and how that ends:", () => {
  test.each(Object.entries(waits))("%s", async (_, { prepare, holder, command, what, ends }) => {
    const directory = makeScratch();
    if (prepare !== undefined) expect(await holdfast(prepare(directory))).toMatchObject({ exitCode: 0 });
    const first = new HoldfastProcess(holder(directory));
    const pid = Number(await first.hear()) || first.pid;
    const second = new HoldfastProcess(command(directory));
    second.endInput();
    await second.hasSaid(`holdfast: waiting for ${what(directory)}: process ${pid} on ${hostname()} holds it since `);
    await second.hasSaid(ends);
    first.endInput();
    const { exitCode, stderr } = await second.ended;
    expect(exitCode).toBe(0);
    expect(stderr.match(/waiting for/g)).toHaveLength(1);
  });
});
