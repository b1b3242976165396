// The program of the thread that keeps the session of this process alive while the main thread is
// busy, and that listens for hints of other processes. It has a connection of its own.
import type pg from "pg";

/** The arguments of the thread. */
export interface HeartOrders {
  /** The file of the driver. */
  readonly driver: string;
  readonly connection: pg.ClientConfig;
  readonly part: number;
  readonly holder: string;
  readonly everyMs: number;
  /** The thread stops if the event loop of the main thread makes no turn for this long. */
  readonly stallMs: number;
  readonly channel: string;
  /** `sharedBytes` of memory, all zero: a cell of 32 bits, then two times of 64 bits. */
  readonly shared: SharedArrayBuffer;
}

/** Counts the turns of the main thread's event loop. */
export const turnsCell = 0;
/** Byte offset of the times of the last beat: monotonic in whole microseconds, and wall time in milliseconds. */
export const timesOffset = 8;
export const sharedBytes = 24;

/** `dead`: other processes judged this session dead. `hint`: something changed. */
export type HeartReport = { readonly kind: "dead" } | { readonly kind: "hint"; readonly path: string };

/**
 * A string, not a module: a thread starts from a file that Node can run, but this file is compiled
 * JavaScript in the package, TypeScript in the tests, and part of a bundle in a user's program.
 *
 * A beat counts from the moment at which it was sent, because the server saw it later. A connection
 * that does not answer is replaced. The deadline of the session decides whether that took too long.
 */
export const heartProgram: string = `"use strict";
const { parentPort, workerData } = require("node:worker_threads");
const { driver, connection, part, holder, everyMs, stallMs, channel, shared } = workerData;
const { Client } = require(driver);
const cells = new Int32Array(shared, 0, 2);
const times = new BigInt64Array(shared, ${timesOffset}, 2);
let isStopped = false;
let wake = () => undefined;
let client;

const monotonicMs = () => { const [s, ns] = process.hrtime(); return s * 1000 + ns / 1e6; };
const pause = (ms) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  wake = () => { clearTimeout(timer); resolve(); };
});
parentPort.on("message", () => { isStopped = true; wake(); });

async function open() {
  const opened = new Client({ ...connection, connectionTimeoutMillis: everyMs, query_timeout: everyMs, keepAlive: true });
  opened.on("error", () => { if (client === opened) client = undefined; });
  opened.on("notification", ({ payload }) => parentPort.postMessage({ kind: "hint", path: payload || "" }));
  await opened.connect();
  client = opened;
  await opened.query("listen " + channel);
}

async function run() {
  let turns = Atomics.load(cells, ${turnsCell});
  let turnedMs = monotonicMs();
  while (!isStopped) {
    const sentMs = monotonicMs();
    const wallMs = Date.now();
    const turnsNow = Atomics.load(cells, ${turnsCell});
    if (turnsNow !== turns) { turns = turnsNow; turnedMs = sentMs; }
    if (sentMs - turnedMs > stallMs) break;
    let restMs = everyMs;
    try {
      if (client === undefined) await open();
      const { rowCount } = await client.query(
        "update hf_holder set seen = clock_timestamp() where p = $1 and id = $2 and dead is null", [part, holder]);
      if (rowCount === 0) { parentPort.postMessage({ kind: "dead" }); break; }
      Atomics.store(times, 1, BigInt(wallMs));
      Atomics.store(times, 0, BigInt(Math.floor(sentMs * 1000)));
    } catch {
      const broken = client;
      client = undefined;
      if (broken !== undefined) broken.end().catch(() => undefined);
      restMs = Math.max(10, everyMs / 8);
    }
    if (!isStopped) await pause(restMs);
  }
  if (client !== undefined) await client.end().catch(() => undefined);
  parentPort.close();
}
run();
`;
