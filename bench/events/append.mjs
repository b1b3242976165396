// Appending from one process: one caller, 64 callers, 1,000 callers, each with a condition that is
// checked.
import { mkdirSync } from "node:fs";
import { openFilePerEvent, openHoldfast, openRaw, openSqlite } from "./contestants.mjs";

const many = (times, call) => () => Promise.all(Array.from({ length: times }, call));

export async function appendGroup({ directory }) {
  const place = (name) => {
    mkdirSync(`${directory}/${name}`, { recursive: true });
    return `${directory}/${name}`;
  };
  const raw = openRaw(place("raw"));
  const files = openFilePerEvent(place("files"));
  const local = await openHoldfast(place("local"));
  const share = await openHoldfast(place("share"), { mode: "share" });
  const sqlite = await openSqlite(place("sqlite"));
  const sqlite100 = await openSqlite(place("sqlite-100"), 100);
  const baseline = "raw: append, fdatasync";
  const peers =
    sqlite === undefined
      ? []
      : [
          { name: "better-sqlite3, WAL FULL, 1 per commit", call: sqlite.append },
          { name: "better-sqlite3, WAL FULL, 100 per commit", callsPerRun: 100, call: sqlite100.append },
        ];
  const against = peers.length === 0 ? [] : [{ ratioMin: 3, of: "better-sqlite3, WAL FULL, 100 per commit" }];
  return {
    title: "events: append one event with a condition, durable, one process",
    baseline,
    contenders: [
      { name: baseline, call: raw.append },
      { name: "a file for each event and index", call: files.append },
      ...peers,
      { name: "holdfast, 1 caller", call: local.append, targets: [{ ratioMin: 0.55, of: baseline }] },
      {
        name: "holdfast, 64 callers",
        callsPerRun: 64,
        call: many(64, local.append),
        targets: [{ ratioMin: 9, of: baseline }, ...against],
      },
      { name: "holdfast, 1000 callers", callsPerRun: 1000, call: many(1000, local.append) },
      { name: "holdfast, mode share, 1 caller", call: share.append },
      { name: "holdfast, mode share, 64 callers", callsPerRun: 64, call: many(64, share.append) },
    ],
    close: async () => {
      for (const each of [raw, files, local, share, sqlite, sqlite100]) await each?.close();
    },
  };
}
