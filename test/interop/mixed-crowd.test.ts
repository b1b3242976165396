// Python and Node on one lock and one box, with kills: short crowds. The large ones are in mixed-crowd.deep.ts.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Semaphore } from "../../src/locks/index.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";
import { handOverTogether, holdTogether } from "./mixed-crowd.ts";
import { client, pythonIsMissing, pythonSuite } from "./python.ts";

describe.skipIf(pythonIsMissing)(pythonSuite("processes of Python and Node, some of them killed"), () => {
  test("hold one lock one at a time", async () => {
    const { python, node } = await holdTogether({ processes: 2, rounds: 30, kills: 2 });
    expect(Math.min(python, node)).toBeGreaterThan(30);
  });

  test("take the same guard", async () => {
    const lock = join(makeScratch(), "job.lock");
    writeFileSync(lock, "pid=999999\ntimestamp=1\n");
    const program = `
import sys, holdfast
with holdfast._GuardFile(sys.argv[1]) as guard:
    sys.stdout.write("locked\\n" if guard.try_lock() else "refused\\n")
    sys.stdout.flush()
    sys.stdin.read()`;
    const start = () => spawn("python3", ["-c", program, lock], { env: { ...process.env, PYTHONPATH: client } });
    const first = start();
    onTestFinished(() => void first.kill("SIGKILL"));
    expect(String((await once(first.stdout, "data"))[0])).toBe("locked\n");
    const semaphore = new Semaphore(lock);
    expect(await semaphore.tryAcquire()).toBe(undefined);
    first.kill("SIGKILL");
    await once(first, "exit");
    await (await semaphore.acquire()).release();
    const guard = await (await openNodePorts(dirname(lock))).osLock.open(`${lock}.guard`);
    onTestFinished(() => guard.close());
    expect(await guard.tryLock()).toBe(true);
    const second = start();
    onTestFinished(() => void second.kill("SIGKILL"));
    expect(String((await once(second.stdout, "data"))[0])).toBe("refused\n");
  });

  test("lose no ticket, and commit each key once", async () => {
    const { python, node } = await handOverTogether({ processes: 1, keys: 30, kills: 2 });
    expect(python + node).toBe(30);
  });
});
