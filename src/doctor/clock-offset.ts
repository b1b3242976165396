// Measures the offset between the clock that stamps files and this machine's.
import type { Ports } from "../ports/ports.ts";
import { bytesOf } from "./check.ts";

/**
 * A larger offset misleads people, and programs that judge a semaphore file by its age. NTP keeps
 * machines far below it.
 */
export const clockOffsetMsMax = 2_000;

/**
 * Returns how far the stamp of a new file lies outside the time in which it was made, by this
 * machine's clock; 0 if it lies inside.
 */
export async function measureClockOffsetMs(ports: Ports, path: string): Promise<number> {
  const beforeMs = ports.clock.wallMs();
  await ports.disk.createFile(path, bytesOf("clock"), { sync: true });
  const afterMs = ports.clock.wallMs();
  const { mtimeMs } = await ports.disk.stat(path);
  if (mtimeMs > afterMs) return Math.round(mtimeMs - afterMs);
  return mtimeMs < beforeMs ? Math.round(mtimeMs - beforeMs) : 0;
}
