// The numbers of a store for Prometheus: read by a parser of the format, complete, bounded, and without a trace in the
// store.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import parsePrometheus from "parse-prometheus-text-format";
import { expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openObjects } from "../../src/objects/index.ts";
import { startS3Gateway } from "../../src/s3/index.ts";
import { startConsole } from "../../src/console/index.ts";
import { openStore, storeMetrics } from "../../src/index.ts";
import { ask, signIn } from "../console/pages.ts";
import { makeScratch } from "../sites/scratch.ts";
import { makeBusyStore, valuesOf } from "./busy-store.ts";

async function promOf(directory: string): Promise<{ readonly exitCode: number; readonly stdout: string }> {
  let stdout = "";
  const write = (text: string | Uint8Array): void => void (stdout += Buffer.from(text).toString());
  const pipes = { stdin: (async function* () {})(), stdout: { write }, stderr: { write: () => undefined } };
  const exitCode = await runCommandLine(["stats", directory, "--prom"], pipes, new AbortController().signal);
  return { exitCode, stdout };
}

test("stats --prom has the numbers of every part, whatever their names", async () => {
  const directory = join(makeScratch(), "store");
  await using _busy = await makeBusyStore(directory);
  const before = readdirSync(`${directory}/ground/holders`).length;
  const { exitCode, stdout } = await promOf(directory);
  expect(exitCode).toBe(0);
  expect(readdirSync(`${directory}/ground/holders`)).toHaveLength(before);
  const values = valuesOf(stdout);
  expect(values).toMatchObject({
    'holdfast_processes{state="alive"}': 2,
    holdfast_locks_held: 1,
    holdfast_locks_waiting: 1,
    'holdfast_events_total{log="main"}': 3,
    'holdfast_events_lag{log="main",kind="consumer",name="mail"}': 3,
    'holdfast_events_running{log="main",kind="consumer",name="mail"}': 0,
    'holdfast_handoff_tickets{box="a \\"box\\"\\\\of\\nmine",state="incoming"}': 1,
    'holdfast_handoff_tickets{box="a \\"box\\"\\\\of\\nmine",state="error"}': 1,
    'holdfast_handoff_paused{box="a \\"box\\"\\\\of\\nmine"}': 1,
    'holdfast_objects_keys{bucket="photos"}': 2,
    'holdfast_objects_bytes{bucket="photos"}': 5,
    holdfast_files: 1,
    holdfast_files_bytes: 4,
    holdfast_files_changes_total: 1,
    'holdfast_metrics_unreadable{what="all"}': 0,
    'holdfast_metrics_omitted{what="all"}': 0,
  });
  expect(values["holdfast_locks_oldest_wait_seconds"]).toBeGreaterThan(0);
  expect(parsePrometheus(stdout).every(({ help, type }) => help !== "" && type !== "")).toBe(true);
});

test("the number of series is bounded, and a part that cannot be read hides no other", async () => {
  const directory = join(makeScratch(), "store");
  await using store = await openStore(directory);
  for (const name of ["c", "a", "b"]) await (await store.events(name)).append({ type: "A", data: 1 });
  const bounded = valuesOf(await storeMetrics(store, { what: "state", namesMax: 2 }));
  expect(Object.keys(bounded).filter((name) => name.startsWith("holdfast_events_total"))).toEqual([
    'holdfast_events_total{log="a"}',
    'holdfast_events_total{log="b"}',
  ]);
  expect(bounded['holdfast_metrics_omitted{what="state"}']).toBe(1);
  await store.close();
  writeFileSync(`${directory}/events/b/log.json`, "torn");
  const damaged = valuesOf((await promOf(directory)).stdout);
  expect(damaged).toMatchObject({
    'holdfast_events_total{log="a"}': 1,
    'holdfast_events_total{log="c"}': 1,
    'holdfast_metrics_unreadable{what="all"}': 1,
  });
  expect(damaged).not.toHaveProperty(['holdfast_events_total{log="b"}']);
});

test("the console serves the same numbers to whoever has its token, and to nobody else", async () => {
  const directory = join(makeScratch(), "store");
  await using _busy = await makeBusyStore(directory);
  await using store = await openStore(directory);
  await using running = await startConsole(store, { port: 0 });
  const { port, cookie } = await signIn(running.url);
  expect((await ask(port, "/metrics")).status).toBe(401);
  expect((await ask(port, "/metrics", { headers: { authorization: "Bearer AAAA" } })).status).toBe(401);
  const reply = await ask(port, "/metrics", { headers: { authorization: `Bearer ${running.token}` } });
  expect(reply.status).toBe(200);
  expect(reply.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
  const names = (text: string): string[] => Object.keys(valuesOf(text)).filter((name) => !name.includes("what="));
  expect(names(reply.text)).toEqual(names((await promOf(directory)).stdout));
  expect(names((await ask(port, "/metrics", { headers: { cookie } })).text)).toEqual(names(reply.text));
});

test("every metric that the dashboard and the alerts name is produced", async () => {
  const directory = join(makeScratch(), "store");
  await using _busy = await makeBusyStore(directory);
  await using objects = await openObjects("memory:");
  const credentials = [{ accessKeyId: "a", secretAccessKey: "s" }];
  await using gateway = await startS3Gateway(objects, { credentials, metrics: true, port: 0 });
  await (await fetch(`${gateway.url}/bucket/key`)).arrayBuffer();
  const ofGateway = await (await fetch(`${gateway.url}/-/metrics`)).text();
  const ofStore = (await promOf(directory)).stdout;
  const produced = new Set(`${ofStore}${ofGateway}`.match(/^holdfast_\w+(?=[ {])/gm));
  const read = (name: string): string =>
    readFileSync(new URL(`../../examples/monitoring/${name}`, import.meta.url), "utf8");
  const dashboard = JSON.parse(read("grafana-dashboard.json")) as {
    readonly panels: readonly { readonly type: string; readonly title: string; readonly targets?: readonly object[] }[];
  };
  expect(dashboard.panels.filter(({ type, targets = [] }) => type !== "row" && targets.length === 0)).toEqual([]);
  const rules = read("prometheus-rules.yml");
  for (const text of [JSON.stringify(dashboard), rules]) {
    const named = new Set(text.match(/holdfast_\w+/g));
    expect(named.size).toBeGreaterThan(10);
    expect([...named].filter((name) => !produced.has(name))).toEqual([]);
  }
  // Labels that an expression selects or shows exist, too.
  const labels = new Set(`${ofStore}${ofGateway}`.match(/\w+(?==")/g)).add("instance");
  const used = `${rules}${JSON.stringify(dashboard)}`.match(/(?<=\$labels\.|\{\{)[a-z]\w*(?= ?\}\})/g) ?? [];
  expect(used.filter((label) => !labels.has(label))).toEqual([]);
  const alerts = rules.split(/^ {6}- alert: /m).slice(1);
  expect(alerts.length).toBeGreaterThan(10);
  for (const alert of alerts) expect(alert).toMatch(/\n {8}expr: .+\n[^]*\n {10}summary: .+\n/);
});
