// `holdfast handoff work`: a command gets all of its ticket, and nothing that it has started outlives its claim.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ProcessGroup } from "../../src/cli/commands/handoff/process-group.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";
import { holdfast, HoldfastProcess, main } from "./holdfast-process.ts";

type Box = Awaited<ReturnType<typeof openHandoff>>;

async function newBox(): Promise<{ directory: string; box: Box; scratch: string }> {
  const scratch = makeScratch();
  const directory = join(scratch, "box");
  const box = await openHandoff(directory);
  onTestFinished(() => box.close());
  return { directory, box, scratch };
}

/** Until the file has the number of a process, which the test ends at the latest. */
async function pidIn(path: string): Promise<number> {
  await until(() => existsSync(path) && readFileSync(path, "utf8").endsWith("\n"));
  const pid = Number(readFileSync(path, "utf8"));
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
  });
  return pid;
}

/** A process that has ended and was not waited for counts as ended. */
function isAlive(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.startsWith("Z");
}

const isPosix = process.platform !== "win32";

describe.runIf(isPosix)("the group of a command", () => {
  function startGroup(script: string): ProcessGroup {
    const child = spawn(script, { shell: true, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    child.stdout.resume();
    child.stderr.resume();
    const group = new ProcessGroup(child, { graceMs: 300, leaveMs: 300 });
    onTestFinished(() => group.kill());
    return group;
  }

  test("ends with the exit code of its first process", async () => {
    expect(await startGroup("exit 7").ended()).toEqual({ exitCode: 7, wasCut: false });
    expect(await startGroup("kill -9 $$").ended()).toEqual({ exitCode: 137, wasCut: false });
  });

  test("is killed if it ignores SIGTERM", async () => {
    const pid = join(makeScratch(), "pid");
    const group = startGroup(`trap '' TERM; echo $$ > '${pid}'; while :; do sleep 0.05; done`);
    const ended = group.ended();
    const first = await pidIn(pid);
    group.end();
    expect(await ended).toEqual({ exitCode: 137, wasCut: true });
    expect(isAlive(first)).toBe(false);
  });

  test("is killed although its shell ended, and its pipes are closed", async () => {
    const pid = join(makeScratch(), "pid");
    const child = `trap "" TERM; echo $$ > ${pid}; while :; do sleep 0.05; done`;
    const group = startGroup(`sh -c '${child}' < /dev/null > /dev/null 2>&1; true`);
    const ended = group.ended();
    const grandchild = await pidIn(pid);
    group.end();
    expect(await ended).toEqual({ exitCode: 143, wasCut: true });
    expect(isAlive(grandchild)).toBe(false);
  });

  test("is waited for while a process in the background has its output open, and keeps the exit code of its shell", async () => {
    const pid = join(makeScratch(), "pid");
    const group = startGroup(`sleep 60 & echo $! > '${pid}'; exit 0`);
    const ended = group.ended();
    const background = await pidIn(pid);
    await until(() => group.hasExited);
    expect(isAlive(background)).toBe(true);
    group.end();
    expect(await ended).toEqual({ exitCode: 0, wasCut: false });
    expect(isAlive(background)).toBe(false);
  });

  test.runIf(process.platform === "linux")("lets go of pipes that a process outside the group keeps open", async () => {
    const pid = join(makeScratch(), "pid");
    const group = startGroup(`setsid sleep 60 & echo $! > '${pid}'; wait`);
    const ended = group.ended();
    await pidIn(pid);
    group.end();
    expect(await ended).toEqual({ exitCode: 143, wasCut: true });
  });
});

describe.runIf(isPosix)("work", () => {
  test("a command that ends with 0 because its time was over has not done its ticket", async () => {
    const { directory, box } = await newBox();
    const { id } = await box.publish({ a: "1" });
    const script = "trap 'exit 0' TERM; sleep 60 & wait";
    const args = ["handoff", "work", directory, "--once", "--timeout", "300ms", "--exec", script];
    expect((await holdfast(args)).stdout).toBe(`${id} retry 1\n`);
    expect(await box.find(id)).toMatchObject({
      state: "delayed",
      history: [{ outcome: "retry", reason: "exit 0: it took longer than 300 ms." }],
    });
  });

  test("a meta of 140 KB and a key with a NUL are in the file that HOLDFAST_TICKET names", async () => {
    const { directory, box, scratch } = await newBox();
    const meta = "m".repeat(140_000);
    const big = await box.publish({ f: "1" }, { meta });
    const nul = await box.publish({ f: "1" }, { key: "a\0b", group: "g" });
    const plain = await box.publish({ f: "1" }, { meta: { small: true } });
    const kept = `cat "$HOLDFAST_TICKET" > '${scratch}'/$HOLDFAST_ID; echo "meta=$HOLDFAST_META key=$HOLDFAST_KEY" >&2`;
    const script = `if test -n "$HOLDFAST_TICKET"; then ${kept}; else echo "plain $HOLDFAST_META"; fi`;
    const { exitCode, stdout, stderr } = await holdfast(["handoff", "work", directory, "--once", "--exec", script], {
      // Of the worker, not of a ticket.
      env: { HOLDFAST_TICKET: "/etc/passwd", HOLDFAST_META: "mine", TMPDIR: scratch },
    });
    expect(exitCode).toBe(0);
    expect(stdout.trim().split("\n").sort()).toEqual([big, nul, plain].map(({ id }) => `${id} done 1`).sort());
    const read = (id: string): unknown => JSON.parse(readFileSync(join(scratch, id), "utf8"));
    expect(read(big.id)).toMatchObject({ id: big.id, key: big.key, attempt: 1, meta, files: [{ name: "f" }] });
    expect(read(nul.id)).toMatchObject({ id: nul.id, key: "a\0b", group: "g" });
    expect(stderr).toContain(`ticket ${big.id}: HOLDFAST_META is empty, because it has 140002 bytes`);
    expect(stderr).toContain(`ticket ${nul.id}: HOLDFAST_KEY is empty, because a variable cannot hold a NUL`);
    expect(stderr).toContain(`meta= key=${big.key}\n`);
    expect(stderr).toContain("meta= key=\n");
    expect(stderr).toContain('plain {"small":true}\n');
    expect(readdirSync(scratch).filter((name) => name.startsWith("holdfast-ticket"))).toEqual([]);
  });

  test("a command that removes the file of its ticket has done its ticket all the same", async () => {
    const { directory, box, scratch } = await newBox();
    const { id } = await box.publish({ f: "1" }, { key: "a\0b" });
    const args = ["handoff", "work", directory, "--once", "--exec", 'rm -r "$(dirname "$HOLDFAST_TICKET")"'];
    expect((await holdfast(args, { env: { TMPDIR: scratch } })).stdout).toBe(`${id} done 1\n`);
  });

  test("a ticket whose file for the environment cannot be written is not lost in silence", async () => {
    const { directory, box, scratch } = await newBox();
    const { id } = await box.publish({ f: "1" }, { key: "a\0b" });
    const args = ["handoff", "work", directory, "--once", "--attempts", "1", "--exec", "true"];
    const { stdout, stderr } = await holdfast(args, { env: { TMPDIR: join(scratch, "absent") } });
    expect(stdout).toBe(`${id} fail 1\n`);
    expect(stderr).toContain(`ticket ${id}: The command could not be started: `);
  });

  test("a command that does not read its input leaves no file of the worker open", async () => {
    const { directory, box } = await newBox();
    const bytes = new Uint8Array(1_000_000);
    for (let index = 0; index < 20; index++) await box.publish({ "a.bin": bytes });
    const args = ["handoff", "work", directory, "--once", "--exec", "ls -l /proc/$PPID/fd | grep -c a.bin; true"];
    const { stderr } = await holdfast(args);
    const counts = stderr.match(/^\d+$/gm)?.map(Number) ?? [];
    if (process.platform === "linux") expect(Math.max(...counts)).toBeLessThanOrEqual(1);
  });

  test("an empty file is an empty input", async () => {
    const { directory, box } = await newBox();
    await box.publish({ "a.txt": "" });
    await box.publish({ "a.txt": "", "large.bin": new Uint8Array(100_000) });
    const args = ["handoff", "work", directory, "--once", "--exec", 'test "$(wc -c)" -eq 0'];
    expect((await holdfast(args)).stdout).toMatch(/^\S+ done 1\n\S+ done 1\n$/);
  });

  test("a command whose input cannot be read to its end has not done its ticket", async () => {
    const { directory, box } = await newBox();
    const { id } = await box.publish({ "a.bin": new Uint8Array(8_000_000) });
    const script = 'head -c 1 > /dev/null; : > "$HOLDFAST_FILE"; cat > /dev/null; exit 0';
    const { stdout, stderr } = await holdfast(["handoff", "work", directory, "--once", "--exec", script]);
    expect(stdout).toBe(`${id} retry 1\n`);
    expect(stderr).toMatch(`ticket ${id}: The command did not get all of its input: the last `);
  });

  test("a second Ctrl-C kills what runs, with all that it has started", async () => {
    const { directory, box, scratch } = await newBox();
    await box.publish({ a: "1" });
    const pid = join(scratch, "pid");
    const script = `trap '' TERM INT; echo $$ > '${pid}'; while :; do sleep 0.05; done`;
    const worker = new HoldfastProcess([
      "handoff",
      "work",
      directory,
      "--exec",
      `sh -c "${script.replaceAll("$", "\\$")}"; true`,
    ]);
    const running = await pidIn(pid);
    worker.kill("SIGINT");
    await worker.hasSaid("taking no new tickets");
    expect(isAlive(running)).toBe(true);
    worker.kill("SIGINT");
    await worker.exited();
    await until(() => !isAlive(running));
  });

  test.runIf(process.platform === "linux")(
    "a command that cannot be started uses up attempts, and says why",
    async () => {
      const { directory, box } = await newBox();
      const { id } = await box.publish({ a: "1" }, { meta: "m".repeat(31_000) });
      // A quarter of the stack is for arguments and variables: what is left is less than the meta.
      const filling = Object.fromEntries(
        Array.from({ length: 4 }, (_, index) => [`FILLING_${index}`, "x".repeat(124_000)]),
      );
      const args = ["handoff", "work", directory, "--once", "--attempts", "1", "--exec", "true"];
      const { stdout, stderr } = spawnSync(
        "sh",
        ["-c", 'ulimit -s 2048; exec "$@"', "sh", process.execPath, main, ...args],
        { encoding: "utf8", env: { PATH: process.env.PATH, ...filling } },
      );
      expect(stderr).toMatch(/The command could not be started: spawn E2BIG/);
      expect(stdout).toBe(`${id} fail 1\n`);
      expect(await box.find(id)).toMatchObject({ state: "error" });
    },
  );

  test.runIf(process.platform === "linux" && process.getuid?.() === 0)(
    "a machine without a process for a command costs a ticket no attempt",
    async () => {
      const directory = join(makeScratch(), "box");
      chmodSync(dirname(directory), 0o777);
      const uid = 47_113;
      await holdfast(["handoff", "put", directory, main], { uid });
      const worker = new HoldfastProcess(["handoff", "work", directory, "--attempts", "1", "--exec", "true"], { uid });
      expect(await worker.hear()).toMatch(/ done 1$/);
      const limited = spawnSync("prlimit", ["--pid", String(worker.pid), "--nproc=1"], { uid, gid: uid });
      expect(limited.status).toBe(0);
      const { stdout } = await holdfast(["handoff", "put", directory, main], { uid });
      const id = stdout.trim();
      expect(await worker.hear()).toBe(`${id} retry 1`);
      await worker.hasSaid(`ticket ${id}: The command could not be started: spawn /bin/sh EAGAIN`);
      const box = await openHandoff(directory);
      onTestFinished(() => box.close());
      expect(await box.find(id)).toMatchObject({ state: "delayed", attempt: 0, history: [] });
    },
  );
});
