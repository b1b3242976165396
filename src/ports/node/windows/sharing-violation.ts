// Waits while another Windows process has a file open without sharing it.
import { setTimeout as sleep } from "node:timers/promises";
import { findErrno } from "../disk/errno.ts";

// 950 ms in nine waits: virus scanners and indexers release a file within this time, and a real
// lack of permission is still reported soon.
const waitsMs: readonly number[] = [10, 20, 40, 80, 160, 160, 160, 160, 160];

/**
 * Runs `action`. On Windows it repeats after EPERM, EBUSY or EACCES for about a second, then throws
 * the last error. Elsewhere it runs once: those errors are final there.
 */
export async function withSharingRetry(
  platform: NodeJS.Platform,
  action: () => void | Promise<void>,
  wait: (ms: number) => Promise<unknown> = sleep,
): Promise<void> {
  for (const waitMs of platform === "win32" ? waitsMs : []) {
    try {
      return await action();
    } catch (error) {
      if (!["EPERM", "EBUSY", "EACCES"].includes(findErrno(error) ?? "")) throw error;
      await wait(waitMs);
    }
  }
  await action();
}
