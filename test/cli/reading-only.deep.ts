// Commands that only look, where nothing can be written: as another user, through a read-only
// mount, and on a disk that is full.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, type TestContext } from "vitest";
import { openEvents, type LogMode } from "../../src/events/index.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { fill, mountSmallDisk } from "../durable/small-disk.ts";
import { makeScratch } from "../sites/scratch.ts";
import { holdfast, HoldfastProcess, type Ended, type StartOptions } from "./holdfast-process.ts";

interface Site {
  /** Where the log and the locks are made, by a user that may write. */
  readonly directory: string;
  /** From then on; the same place as one sees it who may not. */
  readonly forbid: () => { readonly directory: string; readonly options?: StartOptions };
}

function asAnotherUser(context: TestContext): Site {
  if (process.geteuid?.() !== 0) context.skip("only root can start a process as another user");
  const directory = makeScratch();
  return { directory, forbid: () => ({ directory, options: { uid: 65534 } }) };
}

function onReadOnlyMount(context: TestContext): Site {
  const directory = makeScratch();
  return { directory, forbid: () => ({ directory: mountReadOnly(context, directory) }) };
}

function mountReadOnly(context: TestContext, directory: string): string {
  const seen = makeScratch();
  try {
    execFileSync("mount", ["--bind", directory, seen], { stdio: "pipe" });
  } catch (error) {
    context.skip(`nothing can be mounted here (${String(error)}); the refusing disk of test/events stands in`);
  }
  onTestFinished(() => void execFileSync("umount", ["--lazy", seen], { stdio: "pipe" }));
  execFileSync("mount", ["-o", "remount,bind,ro", seen], { stdio: "pipe" });
  return seen;
}

function onFullDisk(context: TestContext): Site {
  const directory = mountSmallDisk(context, "size=1m");
  const forbid = (): { directory: string } => {
    fill(directory);
    return { directory };
  };
  return { directory, forbid };
}

const sites: readonly [string, (context: TestContext) => Site][] = [
  ["as a user who may only read", asAnotherUser],
  ["on a read-only mount", onReadOnlyMount],
  ["on a full disk", onFullDisk],
];

async function make(directory: string, mode: LogMode): Promise<void> {
  const events = await openEvents(join(directory, "log"), { mode });
  for (const data of [1, 2, 3]) await events.append({ type: "Counted", data });
  await events.close();
  const locks = await openPathLocks(directory);
  onTestFinished(() => locks.close());
  const hold = await locks.acquire("stock/report.csv", { tag: "nightly" });
  onTestFinished(() => hold.release());
}

const modes: readonly LogMode[] = ["local", "share"];

describe.each(sites)("%s", (_where, makeSite) => {
  for (const mode of modes)
    test(`a log of mode ${mode}, and locks, are looked at by every command that only looks`, async (context) => {
      const site = makeSite(context);
      await make(site.directory, mode);
      const { directory, options } = site.forbid();
      const log = join(directory, "log");
      const run = async (...args: string[]): Promise<Ended> => {
        const ended = await holdfast(args, options);
        expect(ended).toMatchObject({ exitCode: 0, stderr: "" });
        return ended;
      };
      const looks = [
        run("events", "head", log),
        run("events", "read", log),
        run("events", "export", log),
        run("events", "verify", log),
        run("locks", "list", directory),
      ];
      const [head, read, exported, verified, list] = (await Promise.all(looks)).map(({ stdout }) => stdout.trimEnd());
      expect(head).toBe("3");
      expect(read?.split("\n")).toHaveLength(3);
      expect(exported?.split("\n")).toHaveLength(5);
      expect(verified).toBe("ok: 3 event(s) checked.");
      expect(list).toContain("stock/report.csv");
      const tail = new HoldfastProcess(["events", "tail", log, "--after", "2"], options);
      expect(JSON.parse(await tail.hear())).toMatchObject({ position: 3, data: 3 });
      const data = JSON.stringify("x".repeat(100_000));
      const refused = await holdfast(["events", "append", log, "--type", "Counted", "--data", data], options);
      expect(refused.exitCode).toBe(1);
      expect(refused.stderr).toMatch(/NO_PERMISSION|DISK_FULL/);
      expect((await run("events", "head", log)).stdout.trimEnd()).toBe("3");
    });
});
