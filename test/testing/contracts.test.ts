import { expect, test } from "vitest";
import { createMemoryDisk } from "../../src/ports/memory/disk.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { diskContract, osLockContract, type ContractCheck } from "../../src/testing/index.ts";
import { createMemoryOsLock } from "../../src/ports/memory/os-lock.ts";
import { changedDisk } from "../sites/disks.ts";

/** The names of the checks that do not hold. */
async function brokenOf(checks: readonly ContractCheck[]): Promise<string[]> {
  const broken: string[] = [];
  for (const { name, run } of checks) await run().catch(() => broken.push(name));
  return broken;
}

test("the disk contract finds a disk that finds every name", async () => {
  const disk = (): ReturnType<typeof createMemoryDisk> => createMemoryDisk(nodeClock.wallMs);
  const makeSite = async () => ({ disk: changedDisk(disk(), () => ({ canOpen: async () => true })), root: "/" });
  expect(await brokenOf(diskContract(makeSite))).toEqual([
    "canOpen is true for a file that is there and false for a name that is not, or lies below a file",
    "open says ENOENT for a missing file to read or write, and EEXIST for a taken name to create",
  ]);
});

test("the OS lock contract finds a lock that excludes no process", async () => {
  const makeSite = async () => {
    const disk = createMemoryDisk(nodeClock.wallMs);
    const osLock = createMemoryOsLock(disk);
    const open: typeof osLock.open = async (path, options) => {
      const file = await osLock.open(path, options);
      return new Proxy(file, {
        get(target, key): unknown {
          if (key === "tryLock") return async () => true;
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    };
    return { osLock: { ...osLock, open }, disk, directory: "/" };
  };
  const name = "excludes another descriptor of the same process until it is unlocked";
  const checks = osLockContract(makeSite).filter((check) => check.name === name);
  expect(await brokenOf(checks)).toEqual([name]);
});

test("a contract ends the site of every check, also of one that does not hold", async () => {
  let [made, ended] = [0, 0];
  const checks = diskContract(async () => {
    made++;
    const end = async (): Promise<void> => void ended++;
    return {
      disk: changedDisk(createMemoryDisk(nodeClock.wallMs), () => ({ canOpen: async () => true })),
      root: "/",
      end,
    };
  });
  await brokenOf(checks);
  expect([made, ended]).toEqual([checks.length, checks.length]);
});
