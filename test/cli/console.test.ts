// The commands that show a store: `console`, `watch` and the console of the demo, as people start them.
import { expect, test } from "vitest";
import { openStore } from "../../src/index.ts";
import { act, ask, signIn } from "../console/pages.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";
import { HoldfastProcess } from "./holdfast-process.ts";

test("`console` prints an address with a token, serves the page from the bundle, and ends with 0 when it is stopped", async () => {
  const directory = makeScratch();
  await using store = await openStore(directory);
  const shown = new HoldfastProcess(["console", directory, "--port", "0", "--json"]);
  const { url, allowActions } = JSON.parse(await shown.hear()) as { url: string; allowActions: boolean };
  expect(allowActions).toBe(false);
  const { port, cookie } = await signIn(url);
  expect((await ask(port, "/")).text).toContain("<title>Holdfast console</title>");
  expect((await ask(port, "/console.js")).text.length).toBeGreaterThan(10_000);
  expect((await ask(port, "/api/overview", { headers: { cookie } })).json).toMatchObject({ id: store.id });
  // It has joined nothing.
  expect((await store.holders()).map(({ pid }) => pid)).toEqual([process.pid]);
  shown.kill("SIGINT");
  expect(await shown.ended).toMatchObject({ exitCode: 0 });
});

test("`console` refuses a host beyond this machine without TLS, as wrong usage", async () => {
  const directory = makeScratch();
  await (await openStore(directory)).close();
  const { exitCode, stderr } = await new HoldfastProcess(["console", directory, "--host", "0.0.0.0"]).ended;
  expect(exitCode).toBe(2);
  expect(stderr).toContain("--behind-proxy");
});

test("`watch --json` prints what other processes do as lines of JSON, and as text without control characters", async () => {
  const directory = makeScratch();
  await using store = await openStore(directory, { name: "till 1" });
  const [json, text] = [["--json"], []].map((more) => new HoldfastProcess(["watch", directory, ...more]));
  const box = await store.handoff("labels");
  await box.publish({ "a.txt": "x" }, { key: "bell\u0007" });
  const delivery = await box.take();
  await delivery?.fail("no paper\u001b[2J");
  const failed = async (): Promise<Record<string, unknown>> => {
    for (;;) {
      const entry = JSON.parse((await json?.hear()) ?? "") as Record<string, unknown>;
      if (entry["what"] === "failed") return entry;
    }
  };
  expect(await failed()).toMatchObject({
    kind: "ticket",
    part: "labels",
    subject: "bell\u0007",
    detail: "no paper\u001b[2J",
  });
  let line = "";
  while (!line.includes("failed")) line = (await text?.hear()) ?? "failed";
  expect(line).toMatch(/ticket in labels: bell\\u\{7\} failed {2}no paper\\u\{1b\}\[2J$/);
  for (const watching of [json, text]) watching?.kill("SIGINT");
  expect((await json?.ended)?.exitCode).toBe(0);
});

test("in the console of the demo a stranger finds who holds a lock and why a ticket failed, and replays it", async () => {
  const demo = new HoldfastProcess([
    "demo",
    "--console",
    "--workstations",
    "1",
    "--seconds",
    "1",
    "--dir",
    makeScratch(),
  ]);
  await demo.hasSaid("replay its ticket.");
  const url = /Console: (\S+)/.exec(demo.stderr)?.[1] ?? "";
  const { port, cookie } = await signIn(url);
  const get = async (path: string): Promise<string> => (await ask(port, `/api/${path}`, { headers: { cookie } })).text;
  await until(async () => /"tag":"stock-taking".*"waiting":\[\{/.test(await get("locks")));
  await until(async () => (await get("tickets?box=labels&state=error")).includes("out of paper"));
  const page = JSON.parse(await get("tickets?box=labels&state=error")) as { tickets: { id: string; key: string }[] };
  expect(page.tickets.map(({ key }) => key)).toEqual(["label-4"]);
  await act(port, cookie, "replay", { box: "labels", from: "error", ids: page.tickets.map(({ id }) => id) });
  await until(async () => (await get("tickets?box=labels&state=archive")).includes(`"printed":"label-4"`));
  await demo.hasSaid(`The console stays open: ${url}`);
  expect(await get("events?log=receipts")).toContain("PieceDone");
  demo.kill("SIGINT");
  expect((await demo.ended).exitCode).toBe(0);
});
