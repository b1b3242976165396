// A real file system of a few pages, for a user that may mount one.
import { execFileSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished, type TestContext } from "vitest";
import { makeScratch } from "../sites/scratch.ts";

/**
 * Mounts a file system in memory and unmounts it when the test ends. Skips the test, with the
 * reason, where that is not allowed.
 */
export function mountSmallDisk(context: TestContext, options: string): string {
  const directory = makeScratch();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", directory], { stdio: "pipe" });
  } catch (error) {
    context.skip(`a file system cannot be mounted here (${String(error)}); the simulated ENOSPC tests stand in`);
  }
  onTestFinished(() => void execFileSync("umount", ["--lazy", directory], { stdio: "pipe" }));
  return directory;
}

/** Takes all the room that is left; the returned function gives it back. */
export function fill(directory: string): () => void {
  const path = join(directory, "filler");
  const fd = openSync(path, "w");
  try {
    for (;;) writeSync(fd, Buffer.alloc(4096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    closeSync(fd);
  }
  return () => rmSync(path);
}

let names = 0;

/** Takes all the names that are left. */
export function fillNames(directory: string): () => void {
  const made: string[] = [];
  try {
    for (let index = 0; index < 10_000; index++) {
      const path = join(directory, `filler-${names++}`);
      closeSync(openSync(path, "wx"));
      made.push(path);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
  return () => made.forEach((path) => rmSync(path));
}
