// The ways to keep events that are compared: each appends one small event that must not be there
// yet, durable when it resolves.
import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { openEvents } from "../../dist/events/index.js";

/** What a till writes. */
export function newSale(n) {
  return {
    type: "Sold",
    data: { sku: `sku-${n % 1000}`, price: 1995, till: "till-03" },
    tags: [`sale:${n}`, "till:03"],
  };
}

/**
 * Nothing may match that is newer than what the caller has seen; and no sale of that number at all,
 * where `isUnique`.
 */
function conditionOf(n, after) {
  return { failIfEventsMatch: { types: ["Sold"], tags: [`sale:${n}`] }, after };
}

export async function openHoldfast(directory, options = {}) {
  const events = await openEvents(directory, { lockTimeoutMs: 60_000, ...options });
  let n = Math.floor(Math.random() * 1e12);
  const head = await events.head();
  return {
    events,
    append: async () => {
      const sale = ++n;
      await events.append(newSale(sale), { condition: conditionOf(sale, head) });
    },
    close: () => events.close(),
  };
}

/** As many sales, many at once and without a sync: what is measured comes after. */
export async function fill(events, size) {
  const perAppend = 100;
  for (let n = await events.head(); n < size; n += perAppend * 64)
    await Promise.all(
      Array.from({ length: 64 }, (_, batch) =>
        events.append(Array.from({ length: perAppend }, (_, i) => newSale(n + batch * perAppend + i))),
      ),
    );
}

/** The floor: a line and a sync, without any check and without any lock. */
export function openRaw(directory) {
  mkdirSync(directory, { recursive: true });
  const fd = openSync(`${directory}/log`, "a");
  const line = Buffer.from(
    `${JSON.stringify({ ...newSale(1), id: "x".repeat(36), time: new Date().toISOString() })}\n`,
  );
  return {
    append: async () => {
      writeSync(fd, line);
      fdatasyncSync(fd);
    },
    close: async () => closeSync(fd),
  };
}

/**
 * The layout of the store that seed 0 describes: a file for each event, one for each index, and a
 * ledger, each written anew and synced.
 */
export function openFilePerEvent(directory) {
  for (const name of ["events", "types", "tags"]) mkdirSync(`${directory}/${name}`, { recursive: true });
  let position = 0;
  const indexes = new Map();
  const replace = (path, content) => {
    writeFileSync(`${path}.tmp`, content);
    const fd = openSync(`${path}.tmp`, "r+");
    fsyncSync(fd);
    closeSync(fd);
    renameSync(`${path}.tmp`, path);
  };
  const add = (path) => {
    const positions = indexes.get(path) ?? [];
    indexes.set(path, positions);
    positions.push(position);
    replace(path, JSON.stringify({ Positions: positions }));
  };
  return {
    append: async () => {
      const { type, tags, data } = newSale(++position);
      replace(`${directory}/events/${String(position).padStart(10, "0")}.json`, JSON.stringify({ type, tags, data }));
      add(`${directory}/types/${type}`);
      for (const tag of tags) add(`${directory}/tags/${tag.replace(":", "_")}`);
      replace(`${directory}/ledger`, JSON.stringify({ LastSequencePosition: position }));
    },
    close: async () => undefined,
  };
}

/**
 * A table of events and one of tags, WAL with synchronous FULL, the same check in the same
 * transaction. Undefined where it is not installed.
 */
export async function openSqlite(directory, perCommit = 1) {
  let Database;
  try {
    ({ default: Database } = await import("better-sqlite3"));
  } catch {
    return undefined;
  }
  mkdirSync(directory, { recursive: true });
  const db = new Database(`${directory}/events.db`);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.pragma("busy_timeout = 60000");
  db.exec(`CREATE TABLE IF NOT EXISTS events (position INTEGER PRIMARY KEY, type TEXT, data TEXT);
    CREATE TABLE IF NOT EXISTS tags (tag TEXT, position INTEGER, PRIMARY KEY (tag, position)) WITHOUT ROWID;`);
  const check = db.prepare(
    "SELECT 1 FROM tags t JOIN events e ON e.position = t.position WHERE t.tag = ? AND e.type = ? LIMIT 1",
  );
  const insert = db.prepare("INSERT INTO events (type, data) VALUES (?, ?)");
  const insertTag = db.prepare("INSERT INTO tags (tag, position) VALUES (?, ?)");
  let n = Math.floor(Math.random() * 1e12);
  const append = db.transaction(() => {
    for (let i = 0; i < perCommit; i++) {
      const { type, data, tags } = newSale(++n);
      if (check.get(`sale:${n}`, type) !== undefined) throw new Error("not unique");
      const { lastInsertRowid } = insert.run(type, JSON.stringify(data));
      for (const tag of tags) insertTag.run(tag, lastInsertRowid);
    }
  });
  return { append: async () => append.immediate(), close: async () => void db.close() };
}
