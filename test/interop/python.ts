// Where the Python client is, and whether this machine can run it.
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";

export const client = resolve(import.meta.dirname, "../../clients/python");

export const pythonIsMissing =
  spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status !== 0;

/** The title of a suite, with the reason why it is skipped. */
export function pythonSuite(title: string): string {
  return pythonIsMissing ? `${title} (not run: there is no python3 of version 3.9 or later)` : title;
}
