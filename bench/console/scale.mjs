// How soon the console answers on a large store: the first answer of each view, of a console that has just been started.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { printTable, verdict } from "../report.mjs";
import { fillStore, keyOf, sizes } from "./large-store.mjs";

const holdfast = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));
const targetMs = 1000;

const views = {
  "page, and its first sample": (get) => get.stream(),
  overview: (get) => get("overview"),
  locks: (get) => get("locks"),
  logs: (get) => get("logs"),
  "events, the latest": (get) => get("events", { log: "main" }),
  "events of one type": (get) => get("events", { log: "main", type: "Sold" }),
  "events of one tag": (get) => get("events", { log: "main", tag: `till:03` }),
  "events of a tag that is not there": (get) => get("events", { log: "main", tag: "till:99" }),
  "events since an hour ago": (get) =>
    get("events", { log: "main", since: new Date(Date.now() - 3_600_000).toISOString() }),
  "events until a day ago": (get) =>
    get("events", { log: "main", until: new Date(Date.now() - 86_400_000).toISOString() }),
  "one event": (get) => get("event", { log: "main", position: Math.floor(sizes.events / 2) }),
  "consumers and read models": (get) => get("consumers", { log: "main" }),
  boxes: (get) => get("boxes"),
  "tickets, failed": (get) => get("tickets", { box: "invoices", state: "error" }),
  "tickets, waiting": (get) => get("tickets", { box: "invoices", state: "incoming" }),
  "tickets, done": (get) => get("tickets", { box: "invoices", state: "archive" }),
  "tickets, the last page of many": (get) =>
    get("tickets", { box: "invoices", state: "incoming", skip: Math.floor(sizes.tickets * 0.97) }),
  "tickets of a key that is not there": (get) => get("tickets", { box: "invoices", state: "incoming", key: "none" }),
  "tickets of one group": (get) => get("tickets", { box: "invoices", state: "incoming", group: "customer-499" }),
  "one ticket": async (get) => {
    const { tickets } = await get("tickets", { box: "invoices", state: "error" });
    return async () => await get("ticket", { box: "invoices", id: tickets[0].id });
  },
  buckets: (get) => get("buckets"),
  bucket: (get) => get("bucket", { bucket: "photos" }),
  "keys, folders": (get) => get("keys", { bucket: "photos" }),
  "keys, in a folder": (get) => get("keys", { bucket: "photos", prefix: "folder-500/" }),
  "versions of a key": (get) => get("versions", { bucket: "photos", key: keyOf(Math.floor(sizes.keys / 2)) }),
  "files, top": (get) => get("files"),
  "files, a folder": (get) => get("files", { under: "notes" }),
  "files, changes": (get) => get("changes"),
  "files, work": (get) => get("files-work"),
};

export async function scaleGroup({ directory }) {
  return { run: () => run(`${directory}/store`) };
}

async function run(directory) {
  let startMs = performance.now();
  await fillStore(directory, (part) => {
    console.error(`${part}: filled in ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
    startMs = performance.now();
  });
  await measure(directory);
}

async function measure(directory) {
  const parts = Object.entries({ events: "events", tickets: "handoff", keys: "objects", files: "files" });
  printTable(
    "console: what the store takes",
    parts.map(([unit, folder]) => {
      const { inodes, bytes } = sizeOf(`${directory}/${folder}`);
      const each = (number) => (number / sizes[unit]).toFixed(2);
      const figures = [`${(bytes / 2 ** 30).toFixed(2)} GiB`, `${inodes}`, each(inodes)];
      return { name: `${sizes[unit]} ${unit}`, figures, notes: [`${Math.round(bytes / sizes[unit])} bytes each`] };
    }),
    ["disk", "inodes", "inodes each"],
  );
  const rows = [];
  for (const [name, view] of Object.entries(views)) {
    const { firstMs, againMs } = await ask(directory, view);
    const figures = [`${firstMs.toFixed(0)} ms`, `${againMs.toFixed(0)} ms`];
    rows.push({ name, figures, notes: [verdict("< 1 s", firstMs < targetMs)] });
  }
  printTable("console: the first answer of each view, and the next", rows, ["first", "next"]);
}

/** In a console of its own, which has never seen the store. */
async function ask(directory, view) {
  const child = spawn(process.execPath, [holdfast, "console", directory, "--port", "0", "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [line] = await once(createInterface(child.stdout), "line");
    const { url } = JSON.parse(line);
    const login = await fetch(url, { redirect: "manual" });
    const get = getter(new URL(url), login.headers.get("set-cookie").split(";")[0]);
    const times = [];
    for (let round = 0; round < 2; round++) {
      const startMs = performance.now();
      const next = await view(get);
      if (typeof next !== "function") {
        times.push(performance.now() - startMs);
        continue;
      }
      // What came before was only to find out what to ask for.
      const nextMs = performance.now();
      await next();
      times.push(performance.now() - nextMs);
    }
    return { firstMs: times[0], againMs: times[1] };
  } finally {
    child.kill();
    await once(child, "exit");
  }
}

function getter(base, cookie) {
  const headers = { cookie };
  const open = async (name, query) => {
    const answer = await fetch(new URL(`api/${name}?${new URLSearchParams(query)}`, base), { headers });
    if (!answer.ok) throw new Error(`${name}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const get = async (name, query = {}) => await (await open(name, query)).json();
  get.stream = async () => {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of (await open("stream", {})).body) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("event: sample")) return;
    }
    throw new Error("the stream ended");
  };
  return get;
}

/** A file with several names is counted once. */
function sizeOf(directory, seen = new Set()) {
  let bytes = 0;
  for (const name of readdirSync(directory)) {
    const path = `${directory}/${name}`;
    const found = lstatSync(path);
    if (seen.has(found.ino)) continue;
    seen.add(found.ino);
    bytes += found.blocks * 512 + (found.isDirectory() ? sizeOf(path, seen).bytes : 0);
  }
  return { inodes: seen.size, bytes };
}
