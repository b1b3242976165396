// `holdfast handoff` and what of `holdfast verify|stats|collect` concerns boxes: exit codes and lines that a script
// can rely on.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import parsePrometheus from "parse-prometheus-text-format";
import { describe, expect, onTestFinished, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { openStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { HoldfastProcess } from "./holdfast-process.ts";

type Box = Awaited<ReturnType<typeof openHandoff>>;

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** In this process: quick, and with a coverage that shows. */
async function run(args: readonly string[], input: string = ""): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  async function* stdin(): AsyncGenerator<string> {
    if (input !== "") yield input;
  }
  const write = (name: "stdout" | "stderr") => (text: string | Uint8Array) => {
    written[name] += Buffer.from(text).toString();
  };
  const pipes = { stdin: stdin(), stdout: { write: write("stdout") }, stderr: { write: write("stderr") } };
  const exitCode = await runCommandLine(args, pipes, new AbortController().signal);
  return { exitCode, ...written };
}

async function newBox(): Promise<{ directory: string; box: Box }> {
  const directory = join(makeScratch(), "box");
  const box = await openHandoff(directory);
  onTestFinished(() => box.close());
  return { directory, box };
}

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");
const jsonOf = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

describe("take, ack, retry and fail", () => {
  test("a claim outlives the command that took it, and another one settles it, once", async () => {
    const { directory, box } = await newBox();
    const { id } = await box.publish({ "a.txt": "hello", "b.txt": "world" }, { meta: { n: 1 } });
    const taken = await run(["handoff", "take", directory, "--for", "1h"]);
    expect(taken.exitCode).toBe(0);
    const [claim = "", ...paths] = linesOf(taken.stdout);
    expect(claim.startsWith(id)).toBe(true);
    expect(paths.map((path) => readFileSync(path, "utf8"))).toEqual(["hello", "world"]);
    expect(await run(["handoff", "take", directory])).toMatchObject({ exitCode: 0, stdout: "" });
    const failing = ["handoff", "take", directory, "--fail-if-idle"];
    expect(await run(failing)).toMatchObject({ exitCode: 3, stdout: "" });
    const { id: late } = await box.publish({ "a.txt": "late" }, { expiresMs: 0 });
    const nothing = await run(failing);
    expect(nothing.exitCode).toBe(3);
    expect(nothing.stderr).toContain(`ticket ${late} went to the dead letters: It was not delivered before`);
    const ack = ["handoff", "ack", directory, claim, "--result", '{"booked":17}', "--output", "receipt.txt"];
    expect(await run(ack, "thank you")).toMatchObject({ exitCode: 0, stdout: `ack ${id}\n` });
    expect(await box.find(id)).toMatchObject({ state: "archive", result: { booked: 17 } });
    expect(await run([...ack, "--json"])).toMatchObject({ exitCode: 4, stdout: "" });
    const again = await run(ack);
    expect(again.stderr).toContain("CLAIM_LOST: This claim does not come back");
    expect(again.stderr).not.toMatch(/again/i);
  });

  test("retry gives it back after a delay with the reason, and fail puts it with the dead letters", async () => {
    const { directory, box } = await newBox();
    const { id } = await box.publish({ a: "1" });
    const take = async (): Promise<string> =>
      jsonOf((await run(["handoff", "take", directory, "--json"])).stdout).claim as string;
    await run(["handoff", "retry", directory, await take(), "--reason", "busy"]);
    expect(await box.find(id)).toMatchObject({
      state: "incoming",
      attempt: 1,
      history: [{ outcome: "retry", reason: "busy" }],
    });
    const claim = await take();
    expect(await run(["handoff", "fail", directory, claim])).toMatchObject({ exitCode: 2 });
    await run(["handoff", "fail", directory, claim, "--reason", "no such customer"]);
    expect(await box.find(id)).toMatchObject({ state: "error", attempt: 2 });
    expect(await run(["handoff", "replay", directory, id])).toMatchObject({ exitCode: 0 });
    expect(await run(["handoff", "replay", directory, id])).toMatchObject({ exitCode: 3 });
    expect(await run(["handoff", "replay", directory])).toMatchObject({ exitCode: 2 });
  });
});

describe("looking", () => {
  test("ls prints a line for each ticket, show all that is known of one, cat its bytes", async () => {
    const { directory, box } = await newBox();
    const bytes = Uint8Array.of(104, 105, 10);
    const { id } = await box.publish({ "a.bin": bytes }, { key: "order 1" });
    await box.publish({ a: "1" }, { delayMs: 3_600_000 });
    const listed = await run(["handoff", "ls", directory]);
    expect(linesOf(listed.stdout)).toHaveLength(2);
    expect(listed.stdout).toMatch(new RegExp(`^${id}  incoming    0  \\S+Z  order 1  a\\.bin\n`));
    const json = await run(["handoff", "ls", directory, "--state", "delayed", "--json"]);
    expect(linesOf(json.stdout).map(jsonOf)).toMatchObject([{ state: "delayed" }]);
    expect(await run(["handoff", "ls", directory, "--state", "done"])).toMatchObject({ exitCode: 2 });
    expect((await run(["handoff", "show", directory, "order 1", "--key"])).stdout).toContain(`id        ${id}\n`);
    expect(await run(["handoff", "show", directory, "0".repeat(36)])).toMatchObject({ exitCode: 3, stdout: "" });
    expect(await run(["handoff", "cat", directory, id])).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(await run(["handoff", "cat", directory, id, "other"])).toMatchObject({ exitCode: 3 });
  });

  test("show --wait is the receipt: 0 when it is done, 65 when it has failed for good", async () => {
    const { directory, box } = await newBox();
    for (const [how, exitCode] of [["ack", 0] as const, ["fail", 65] as const]) {
      const { id } = await box.publish({ a: "1" });
      const waiting = run(["handoff", "show", directory, id, "--wait", "--json"]);
      const delivery = await box.take({ waitMs: 60_000 });
      await delivery?.[how]("because");
      const { stdout, ...end } = await waiting;
      expect(end).toMatchObject({ exitCode });
      expect(jsonOf(stdout)).toMatchObject({ id, state: how === "ack" ? "archive" : "error" });
    }
  });

  test("stats --prom is read by a parser of the format, whatever the name of the box", async () => {
    const directory = join(makeScratch(), 'a "box"\\of\nmine');
    await using box = await openHandoff(directory);
    await box.publish({ a: "1" });
    await box.pause();
    const { stdout, exitCode } = await run(["handoff", "stats", directory, "--prom"]);
    expect(exitCode).toBe(0);
    const gauge = (name: string, ...metrics: object[]): object => ({ name, type: "GAUGE", metrics });
    expect(parsePrometheus(stdout)).toMatchObject([
      gauge(
        "holdfast_handoff_tickets",
        ...["incoming", "delayed", "processing", "archive", "error"].map((state) => ({
          value: state === "incoming" ? "1" : "0",
          labels: { box: directory, state },
        })),
      ),
      gauge("holdfast_handoff_oldest_incoming_seconds", { value: expect.stringMatching(/^[0-9.]+$/) as string }),
      gauge("holdfast_handoff_holders", { value: "0" }),
      gauge("holdfast_handoff_paused", { value: "1" }),
    ]);
    expect(jsonOf((await run(["handoff", "stats", directory, "--json"])).stdout)).toMatchObject({
      incoming: 1,
      paused: true,
    });
  });
});

describe("tending", () => {
  test("pause and resume are seen by take; verify repairs; collect empties all parts of a store", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    const box = await store.handoff("invoices");
    const { id } = await box.publish({ a: "x".repeat(70_000) });
    const in_ = (verb: string, ...rest: string[]): string[] => [
      "handoff",
      verb,
      directory,
      "--box",
      "invoices",
      ...rest,
    ];
    expect(await run(in_("pause", "--reason", "stocktaking"))).toMatchObject({ exitCode: 0 });
    const paused = { exitCode: 75, stderr: expect.stringContaining("is paused: stocktaking") as string };
    expect(await run(in_("take"))).toMatchObject(paused);
    expect((await run(in_("stats"))).stdout).toContain("paused true\npauseReason stocktaking\n");
    expect(await run(in_("work", "--once", "--exec", "true"))).toMatchObject({ exitCode: 75 });
    await run(in_("resume"));
    const payload = join(directory, "handoff", "invoices", "data", id.slice(-2), id, "a");
    writeFileSync(payload, "altered");
    expect(await run(["verify", directory])).toMatchObject({
      exitCode: 5,
      stdout: expect.stringContaining("7 instead of 70000 bytes") as string,
    });
    expect(await run(in_("verify", "--repair"))).toMatchObject({ exitCode: 0 });
    expect(await run(["verify", directory])).toMatchObject({ exitCode: 0 });
    expect((await run(["stats", directory])).stdout).toContain(
      "box, incoming 0, delayed 0, processing 0, archive 0, error 1",
    );
    const collected = await run(["collect", directory, "--error", "0s", "--json"]);
    expect(jsonOf(collected.stdout)).toMatchObject({ part: "box", collected: { tickets: 0, bytes: 0 } });
  });

  test("where there is no box every verb ends with 66, and makes nothing", async () => {
    const directory = join(makeScratch(), "none");
    const more: Record<string, string[]> = {
      ack: ["x"],
      retry: ["x"],
      fail: ["x", "--reason", "y"],
      show: ["x"],
      cat: ["x"],
      replay: ["--all"],
      work: ["--exec", "true"],
    };
    for (const verb of [
      "take",
      "ack",
      "retry",
      "fail",
      "work",
      "ls",
      "show",
      "cat",
      "stats",
      "watch",
      "replay",
      "pause",
      "resume",
      "verify",
    ])
      expect([verb, (await run(["handoff", verb, directory, ...(more[verb] ?? [])])).exitCode]).toEqual([verb, 66]);
    expect(existsSync(directory)).toBe(false);
  });
});

describe("work", () => {
  test("an exit code says what becomes of a ticket, and the end of stderr why", async () => {
    const { directory, box } = await newBox();
    const outcomes = { good: "exit 0", bad: "echo 'no such customer' >&2; exit 65", busy: "exit 75" };
    const ids: Record<string, string> = {};
    for (const [name, script] of Object.entries(outcomes))
      ids[name] = (await box.publish({ name: script }, { key: name })).id;
    // The first file is on stdin, and its path in the environment.
    const script =
      'test "$(cat)" = "$(cat "$HOLDFAST_FILE")" && echo "$HOLDFAST_KEY $HOLDFAST_ATTEMPT" && sh "$HOLDFAST_FILES/name"';
    const { exitCode, stdout, stderr } = await run([
      "handoff",
      "work",
      directory,
      "--once",
      "-j",
      "2",
      "--exec",
      script,
    ]);
    expect(exitCode).toBe(0);
    expect(linesOf(stdout).sort()).toEqual([`${ids.good} done 1`, `${ids.bad} fail 1`, `${ids.busy} retry 1`].sort());
    for (const name of Object.keys(outcomes)) expect(stderr).toContain(`${name} 1\n`);
    expect(await box.findByKey("good")).toMatchObject({ state: "archive" });
    expect(await box.findByKey("bad")).toMatchObject({
      state: "error",
      history: [{ outcome: "fail", reason: "exit 65: no such customer" }],
    });
    expect(await box.findByKey("busy")).toMatchObject({ state: "delayed", history: [{ outcome: "retry" }] });
    const again = ["handoff", "work", directory, "--once", "--exec", script];
    expect(await run(again)).toMatchObject({ exitCode: 0 });
    expect(await run([...again, "--fail-if-idle"])).toMatchObject({ exitCode: 3 });
  });

  test("a ticket that has had its attempts goes to the dead letters, and a command that takes too long is ended", async () => {
    const { directory, box } = await newBox();
    const { id } = await box.publish({ a: "1" });
    const args = ["handoff", "work", directory, "--once", "--attempts", "1", "--timeout", "50ms", "--json"];
    const { stdout } = await run([...args, "--exec", "exec sleep 3600"]);
    expect(jsonOf(stdout)).toEqual({ id, outcome: "fail", attempt: 1 });
    expect((await box.find(id))?.history[0]?.reason).toMatch(/^exit 143: it took longer than 50 ms\.$/);
  });

  test("SIGTERM drains: the command that runs is waited for, nothing new is taken, and the exit code is 0", async () => {
    const { directory, box } = await newBox();
    const [first] = [await box.publish({ a: "1" })];
    const go = join(directory, "..", "go");
    const worker = new HoldfastProcess([
      "handoff",
      "work",
      directory,
      "--exec",
      `echo begun; until test -e '${go}'; do sleep 0.05; done`,
    ]);
    await worker.hasSaid("begun");
    worker.kill("SIGTERM");
    await worker.hasSaid("taking no new tickets");
    const second = await box.publish({ a: "2" });
    writeFileSync(go, "");
    expect(await worker.ended).toMatchObject({ exitCode: 0, signal: null, stdout: `${first?.id} done 1\n` });
    expect(await box.find(second.id)).toMatchObject({ state: "incoming", attempt: 0 });
  });

  test("a worker that is killed loses nothing: its ticket goes back, and the attempt counts", async () => {
    const { directory, box } = await newBox();
    const { id } = await box.publish({ a: "1" });
    const worker = new HoldfastProcess(["handoff", "work", directory, "--exec", "echo begun; exec sleep 30"]);
    await worker.hasSaid("begun");
    worker.kill("SIGKILL");
    await worker.exited();
    const delivery = await box.take({ waitMs: 60_000 });
    expect(delivery).toMatchObject({ id, attempt: 2 });
    await delivery?.ack();
    expect(readdirSync(join(directory, "processing")).length).toBeLessThanOrEqual(1);
  });
});

describe("what a newcomer meets", () => {
  /** Makes the file of a ticket that waits unreadable. */
  function spoil(directory: string, id: string): void {
    const names = readdirSync(join(directory, "incoming"), { recursive: true, encoding: "utf8" });
    writeFileSync(join(directory, "incoming", names.find((each) => each.includes(`${id}-`)) ?? ""), "garbage");
  }

  test("work tells of tickets that no command saw, on stdout by a line and on stderr why", async () => {
    const { directory, box } = await newBox();
    const torn = await box.publish({ a: "1" });
    const late = await box.publish({ a: "2" }, { expiresMs: 0 });
    const altered = await box.publish({ a: "x".repeat(70_000) });
    spoil(directory, torn.id);
    writeFileSync(join(directory, "data", altered.id.slice(-2), altered.id, "a"), "altered");
    const args = ["handoff", "work", directory, "--once", "--quiet", "--exec", "exit 1"];
    const { exitCode, stdout, stderr } = await run(args);
    expect(exitCode).toBe(0);
    expect(linesOf(stdout).sort()).toEqual([torn, late, altered].map(({ id }) => `${id} fail 1`).sort());
    for (const [{ id }, why] of [[torn, "not a valid"] as const, [late, "not delivered before"] as const])
      expect(stderr).toMatch(new RegExp(`warning: ticket ${id} went to the dead letters: .*${why}`));
    expect(stderr).toContain("7 instead of 70000 bytes");
    const listed = await run(["handoff", "ls", directory, "--state", "error"]);
    expect(linesOf(listed.stdout)).toHaveLength(3);
    expect(listed.stdout).toMatch(new RegExp(`${late.id}  error .* It was not delivered before`));
    expect(listed.stdout).toMatch(new RegExp(`${torn.id}  error .*  -  -  its file is damaged: `));
    expect(await run(["handoff", "show", directory, torn.id])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("damaged   ") as string,
    });
    expect(await run(["handoff", "replay", directory, torn.id])).toMatchObject({
      exitCode: 5,
      stderr: expect.stringContaining("cannot be replayed") as string,
    });
  });

  test("put prints the id alone, also of a ticket that was published before", async () => {
    const { directory } = await newBox();
    const put = ["handoff", "put", directory, "--name", "a", "--key", "order 1"];
    const first = await run(put, "1");
    expect(await run(put, "1")).toMatchObject({
      exitCode: 0,
      stdout: first.stdout,
      stderr: expect.stringContaining("published before under this key") as string,
    });
  });

  test("show lists the outputs of a handler, and cat prints one", async () => {
    const { directory, box } = await newBox();
    const { id } = await box.publish({ a: "1" });
    const delivery = await box.take();
    await delivery?.output("receipt.txt", "paid");
    await delivery?.ack();
    expect((await run(["handoff", "show", directory, id])).stdout).toMatch(/^output    receipt\.txt, 4 bytes, sha256/m);
    expect(await run(["handoff", "cat", directory, id, "receipt.txt"])).toMatchObject({ stdout: "paid" });
    expect(await run(["handoff", "cat", directory, id, "--output", "receipt.txt"])).toMatchObject({ stdout: "paid" });
    expect(await run(["handoff", "cat", directory, id, "--output", "a"])).toMatchObject({ exitCode: 3, stdout: "" });
    expect(await run(["handoff", "cat", directory, id, "a", "--output", "a"])).toMatchObject({ exitCode: 2 });
  });

  test("watch ends with 0 when it is told to end", async () => {
    const { directory } = await newBox();
    const watch = new HoldfastProcess(["handoff", "watch", directory]);
    expect(await watch.hear()).toContain("incoming 0");
    watch.kill("SIGINT");
    expect(await watch.ended).toMatchObject({ exitCode: 0, signal: null, stderr: "" });
  });

  test("with --json also what is not there, or is paused, is an object", async () => {
    const { directory, box } = await newBox();
    const codeOf = async (...args: string[]): Promise<unknown> => {
      const { exitCode, stderr } = await run(["handoff", ...args, "--json"]);
      return [exitCode, (jsonOf(stderr).error as { code: string }).code];
    };
    expect(await codeOf("take", directory, "--fail-if-idle")).toEqual([3, "NO_TICKET"]);
    expect(await codeOf("show", directory, "nope")).toEqual([3, "NO_SUCH_TICKET"]);
    expect(await codeOf("work", directory, "--once", "--fail-if-idle", "--exec", "true")).toEqual([3, "NO_TICKET"]);
    expect(await codeOf("replay", directory, "nope")).toEqual([3, "NO_SUCH_TICKET"]);
    const { id } = await box.publish({ a: "1" });
    expect(await codeOf("replay", directory, id)).toEqual([3, "NOTHING_TO_REPLAY"]);
    expect((await run(["handoff", "replay", directory, id])).stderr).toContain(`${id} is in incoming, not in error`);
    await box.pause();
    expect(await codeOf("take", directory)).toEqual([75, "PAUSED"]);
    expect(await codeOf("work", directory, "--once", "--exec", "true")).toEqual([75, "PAUSED"]);
  });

  test("a file or a folder that is not there, or --no-create, makes no box", async () => {
    const directory = join(makeScratch(), "box");
    const missing = join(directory, "..", "missing");
    expect(await run(["handoff", "put", directory, missing])).toMatchObject({ exitCode: 3 });
    const adopted = await run(["handoff", "adopt", directory, missing, "--renamed"]);
    expect(adopted).toMatchObject({
      exitCode: 66,
      stderr: expect.stringContaining("Is the share mounted?\n") as string,
    });
    expect(await run(["handoff", "put", directory, "--no-create", "--name", "a"], "1")).toMatchObject({ exitCode: 66 });
    const here = join(directory, "..");
    expect(await run(["handoff", "adopt", directory, here, "--renamed", "--no-create"])).toMatchObject({
      exitCode: 66,
    });
    const named = await run(["handoff", "put", join(directory, "missing"), "--name", "a", "--box", "inv"], "1");
    expect(named).toMatchObject({ exitCode: 66, stderr: expect.stringContaining("Mount the share") as string });
    expect(existsSync(directory)).toBe(false);
    const box = await newBox();
    const exported = await run(["handoff", "export", box.directory, missing]);
    expect(exported.exitCode).toBe(66);
    expect(exported.stderr).not.toContain("exporting");
  });

  test("a box that is not there is told with those that are, and a part that is not there once", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    for (const name of ["invoices", "orders"]) await store.handoff(name);
    const { exitCode, stderr } = await run(["handoff", "ls", directory, "--box", "invoice"]);
    expect(exitCode).toBe(66);
    expect(stderr).toContain("the store has invoices, orders");
    const none = await run(["collect", join(directory, "none")]);
    expect(none).toMatchObject({ exitCode: 66, stdout: "" });
    expect(linesOf(none.stderr)).toHaveLength(1);
  });

  test("a worker that finds its box paused says so once", async () => {
    const { directory, box } = await newBox();
    await box.pause("stocktaking");
    const worker = new HoldfastProcess(["handoff", "work", directory, "--exec", "true"]);
    await worker.hasSaid("is paused: stocktaking; waiting until it is resumed");
    await box.resume();
    const { id } = await box.publish({ a: "1" });
    await box.waitFor(id);
    worker.kill("SIGTERM");
    const { exitCode, stderr } = await worker.ended;
    expect(exitCode).toBe(0);
    expect(stderr.split("is paused")).toHaveLength(2);
  });
});
