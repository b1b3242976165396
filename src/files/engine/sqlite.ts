// Loads SQLite in WebAssembly, once per process, when the first index needs it.
import type { Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import { holdfastError, messageOf } from "../../errors.ts";

let loading: Promise<Sqlite3Static> | undefined;

/**
 * Takes about a tenth of a second the first time. Throws INDEX_FAILED if the engine does not load,
 * for example in a bundle without `sqlite3.wasm`.
 */
export async function loadSqlite(): Promise<Sqlite3Static> {
  loading ??= load();
  try {
    return await loading;
  } catch (cause) {
    // The next caller tries again.
    loading = undefined;
    const message =
      `The search index cannot be used: SQLite does not load (${messageOf(cause)}). In a bundle, put the file ` +
      "sqlite3.wasm of the package @sqlite.org/sqlite-wasm beside it (docs/bundlers.md). The files themselves are safe.";
    throw holdfastError("INDEX_FAILED", message, { path: "sqlite3.wasm" }, cause);
  }
}

async function load(): Promise<Sqlite3Static> {
  const { default: initialise } = await import("@sqlite.org/sqlite-wasm");
  // It prints only its own warnings; every failure is thrown as well.
  return await initialise({ print: () => undefined, printErr: () => undefined });
}
