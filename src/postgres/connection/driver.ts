// Loads `pg`, an optional peer dependency: a program that opens no location in PostgreSQL does not
// need it.
import { createRequire } from "node:module";
import type pg from "pg";
import { holdfastError } from "../../errors.ts";

export type Driver = typeof pg;

/** Throws UNSUPPORTED if the package is not installed. */
export async function loadDriver(location: string): Promise<Driver> {
  try {
    return (await import("pg")).default;
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    const message = `${location}: locations in PostgreSQL need the package pg, version 8. Install it with \`npm install pg\`.`;
    throw holdfastError("UNSUPPORTED", message, { what: "pg", location }, cause);
  }
}

/** Returns the file of the driver, for a thread that loads it itself. */
export function driverPath(): string {
  return createRequire(import.meta.url).resolve("pg");
}
