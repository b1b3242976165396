// What the channels of telemetry cost: processor time of appends and locks with them, while nobody listens and while
// somebody does, against the same build without them, in turns. Usage: node bench/telemetry.mjs [rounds]
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [first, ...rest] = process.argv.slice(2);
if (first === "child") await child(...rest);
else parent(Number(first ?? 9));

function parent(rounds) {
  const root = join(import.meta.dirname, "..");
  const scratch = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "holdfast-bench-"));
  try {
    // Beside the package, so that it finds the same dependencies.
    const without = join(root, "dist-without-telemetry");
    rmSync(without, { recursive: true, force: true });
    cpSync(join(root, "dist"), without, { recursive: true });
    replace(join(without, "telemetry/trace.js"), [
      ["export function traceMethods(", "export function traceMethods() {}\nfunction unusedTraceMethods("],
      [
        "export function trace(name, describe, work) {",
        "export function trace(name, describe, work) {\n    return work();",
      ],
    ]);
    replace(join(without, "telemetry/signals.js"), [
      ["export function signal(", "export function signal() {}\nfunction unusedSignal("],
    ]);
    const variants = [
      ["without", without, ""],
      ["nobody listens", join(root, "dist"), ""],
      ["a listener on every operation", join(root, "dist"), "listen"],
    ];
    const results = new Map(variants.map(([name]) => [name, { append: [], lock: [] }]));
    for (let round = 0; round < rounds; round++)
      for (const [name, dist, mode] of round % 2 === 0 ? variants : variants.toReversed()) {
        const directory = join(scratch, `${round}-${name.replaceAll(" ", "-")}`);
        const output = execFileSync(process.execPath, [import.meta.filename, "child", dist, directory, mode]);
        const { append, lock } = JSON.parse(output);
        results.get(name).append.push(append);
        results.get(name).lock.push(lock);
        rmSync(directory, { recursive: true, force: true });
      }
    rmSync(without, { recursive: true, force: true });
    const base = results.get("without");
    console.log("| variant | append, µs of CPU | ratio | acquire and release, µs of CPU | ratio |");
    console.log("| --- | --- | --- | --- | --- |");
    for (const [name, { append, lock }] of results) {
      const ratio = (each, of) => (median(each) / median(of)).toFixed(3);
      const cells = [
        median(append).toFixed(1),
        ratio(append, base.append),
        median(lock).toFixed(1),
        ratio(lock, base.lock),
      ];
      console.log(`| ${[name, ...cells].join(" | ")} |`);
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function replace(path, pairs) {
  let text = readFileSync(path, "utf8");
  for (const [from, to] of pairs) {
    if (!text.includes(from)) throw new Error(`${path} has no ${from}`);
    text = text.replace(from, to);
  }
  writeFileSync(path, text);
}

async function child(dist, directory, mode) {
  const load = (path) => import(pathToFileURL(join(dist, path)).href);
  const { openStore, operationNames } = await load("index.js");
  if (mode === "listen") {
    const { tracingChannel } = await import("node:diagnostics_channel");
    const none = () => undefined;
    const all = { start: none, end: none, asyncStart: none, asyncEnd: none, error: none };
    for (const name of operationNames) tracingChannel(`holdfast:${name}`).subscribe(all);
  }
  const store = await openStore(directory, { durability: "none" });
  const events = await store.events("main");
  const locks = await store.locks();
  const append = async () => await events.append({ type: "Sold", data: { sku: "A1" }, tags: ["sku:A1"] });
  const lock = async () => await (await locks.acquire("a/b")).release();
  const measure = async (work, count) => {
    for (let i = 0; i < count / 4; i++) await work();
    const before = process.cpuUsage();
    for (let i = 0; i < count; i++) await work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / count;
  };
  const result = { append: await measure(append, 4000), lock: await measure(lock, 2000) };
  await store.close();
  console.log(JSON.stringify(result));
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
