// Threads that do work beside the event loop: whatever happens to one, its caller learns that the work was not done,
// and the process can end.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { createNodeThreads } from "../../src/ports/node/threads.ts";
import type { HelperThread } from "../../src/ports/threads.ts";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import { makeScratch } from "../sites/scratch.ts";

const [threads, threadSide] = ["threads", "thread-side"].map((name) =>
  pathToFileURL(compiledModule(new URL(`../../src/ports/node/${name}.ts`, import.meta.url))),
);

/** A module that appends the text of a request to a file, and does what the text says. */
function moduleIn(directory: string): { readonly base: string; readonly said: string } {
  const said = join(directory, "said");
  writeFileSync(
    join(directory, "work.mjs"),
    `import { appendFileSync } from "node:fs";
    import { doRequests } from ${JSON.stringify(threadSide?.href)};
    doRequests(async ({ text }, pause) => {
      appendFileSync(${JSON.stringify(said)}, text);
      if (text === "die") process.exit(1);
      if (text === "fail") throw new Error("as it was told");
      if (text === "hang") for (;;);
      if (text === "forever") for (;;) await pause();
    });`,
  );
  return { base: pathToFileURL(said).href, said };
}

function joined(options: { readonly stallMs?: number } = {}): HelperThread {
  const thread = createNodeThreads(options.stallMs).join("work.mjs", moduleIn(makeScratch()).base);
  if (thread === undefined) throw new Error("there is no module");
  return thread;
}

describe("a thread", () => {
  it("does its requests, and goes on after one that failed", async () => {
    const thread = joined();
    expect(await thread.run({ text: "a" })).toBe(true);
    expect(await thread.run({ text: "fail" })).toBe(false);
    expect(await thread.run({ text: "b" })).toBe(true);
    await thread.leave();
  });

  it("that dies has done nothing that it had not reported, and is not started again", async () => {
    const thread = joined();
    expect(await Promise.all(["forever", "die"].map((text) => thread.run({ text })))).toEqual([false, false]);
    expect(await thread.run({ text: "a" })).toBe(false);
    await thread.leave();
  });

  it("that hangs is ended", async () => {
    const thread = joined({ stallMs: 200 });
    expect(await thread.run({ text: "hang" })).toBe(false);
    expect(await thread.run({ text: "a" })).toBe(false);
    await thread.leave();
  });

  it("goes on with other requests when one is cancelled, and does none that was cancelled before", async () => {
    const thread = joined();
    const aborting = new AbortController();
    const forever = thread.run({ text: "forever" }, aborting.signal);
    expect(await thread.run({ text: "a" })).toBe(true);
    aborting.abort();
    expect(await forever).toBe(false);
    expect(await thread.run({ text: "a" }, aborting.signal)).toBe(false);
    expect(await thread.run({ text: "a" })).toBe(true);
    await thread.leave();
  });

  it("is shared, and ends when all have left", async () => {
    const threads = createNodeThreads();
    const { base } = moduleIn(makeScratch());
    const [first, second] = [threads.join("work.mjs", base), threads.join("work.mjs", base)];
    expect(await first?.run({ text: "a" })).toBe(true);
    await first?.leave();
    expect(await second?.run({ text: "a" })).toBe(true);
    await second?.leave();
    // A thread that ended does not work; the next one to join starts another.
    expect(await second?.run({ text: "a" })).toBe(false);
    const third = threads.join("work.mjs", base);
    expect(await third?.run({ text: "a" })).toBe(true);
    await third?.leave();
  });

  it("does not exist without its file, as in a bundle, or without a place to look for it", () => {
    const { base } = moduleIn(makeScratch());
    expect(createNodeThreads().join("other.mjs", base)).toBeUndefined();
    expect(createNodeThreads().join("work.mjs", undefined as unknown as string)).toBeUndefined();
  });

  it("lets the process end when it is idle, and not before its work is done", () => {
    const { base } = moduleIn(makeScratch());
    const program = `
      import { nodeThreads } from ${JSON.stringify(threads?.href)};
      console.log(await nodeThreads.join("work.mjs", ${JSON.stringify(base)}).run({ text: "a" }));`;
    const printed = execFileSync(process.execPath, ["--input-type=module", "-e", program], { timeout: 60_000 });
    expect(printed.toString().trim()).toBe("true");
  });
});
