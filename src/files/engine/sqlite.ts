// The engine of SQLite in WebAssembly: loaded by the first index that needs it, and once for this process.
import type { Sqlite3Static } from "@sqlite.org/sqlite-wasm";

let loading: Promise<Sqlite3Static> | undefined;

/** Takes about a tenth of a second the first time. */
export async function loadSqlite(): Promise<Sqlite3Static> {
  loading ??= load();
  try {
    return await loading;
  } catch (error) {
    // The next caller tries again.
    loading = undefined;
    throw error;
  }
}

async function load(): Promise<Sqlite3Static> {
  const { default: initialise } = await import("@sqlite.org/sqlite-wasm");
  // What it prints are warnings of its own; every failure is thrown, too.
  return await initialise({ print: () => undefined, printErr: () => undefined });
}
