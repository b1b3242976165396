import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Volume } from "../../src/ports/disk.ts";
import { createNodeWatch } from "../../src/ports/node/watch.ts";
import { makeScratch } from "../sites/scratch.ts";

const volume = (kind: Volume["kind"]): Volume => ({ kind, type: "test", mountOptions: [] });
const watch = createNodeWatch(volume("local"));

describe("the real watch", () => {
  it("hints at a new file until it is stopped", async () => {
    const directory = makeScratch();
    let hints = 0;
    const stop = watch.start(directory, () => hints++);
    onTestFinished(stop);
    let names = 0;
    await vi.waitFor(
      () => {
        writeFileSync(join(directory, `${names++}`), "");
        expect(hints).toBeGreaterThan(0);
      },
      { timeout: 20_000 },
    );
    stop();
    stop();
    const before = hints;
    writeFileSync(join(directory, "after"), "");
    // Time passes: in which a hint could come that must not.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(hints).toBe(before);
  });

  it("does not keep the process alive", () => {
    const before = process.getActiveResourcesInfo();
    onTestFinished(watch.start(makeScratch(), () => undefined));
    expect(process.getActiveResourcesInfo()).toEqual(before);
  });

  it("stays silent about a directory that is missing or vanishes", async () => {
    const directory = makeScratch();
    watch.start(join(directory, "missing"), () => undefined)();
    const stop = watch.start(directory, () => undefined);
    rmSync(directory, { recursive: true });
    // Time passes: in which it could fail.
    await new Promise((resolve) => setTimeout(resolve, 20));
    stop();
  });

  it("does not touch a share, where starting it could block the main thread", () => {
    expect(createNodeWatch(volume("network")).start("/nowhere", () => undefined)()).toBe(undefined);
  });
});
