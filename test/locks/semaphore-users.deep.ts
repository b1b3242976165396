// One lock of several users: what one has made, the other can use as far as the directory lets it,
// and no further.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Semaphore } from "../../src/locks/index.ts";
import { mountSmallDisk } from "../durable/small-disk.ts";
import { makeScratch } from "../sites/scratch.ts";
import { lockPath, SemaphoreWorld } from "./semaphore-world.ts";

const main = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));
const isRoot = process.geteuid?.() === 0;
if (!isRoot) console.log("semaphores of several users: skipped, only root can start processes of other users");

interface User {
  readonly uid: number;
  readonly gid: number;
}
const [root, ada, bob] = [
  { uid: 0, gid: 0 },
  { uid: 61_001, gid: 61_001 },
  { uid: 61_002, gid: 61_002 },
];
const crew = 62_000;

/**
 * One command of this user, which acts for the process that runs the test: that lives as long as
 * needed.
 */
function holdfast({ uid, gid }: User, ...args: string[]): { readonly status: number | null; readonly said: string } {
  const full = [main, "semaphore", ...args, "--pid", String(process.pid)];
  const { status, stdout, stderr } = spawnSync(process.execPath, full, { uid, gid, cwd: "/", encoding: "utf8" });
  return { status, said: stdout + stderr };
}

/** A lock in a directory with this mode and owner. */
function newLock(mode: number, { uid, gid }: User = root): string {
  const directory = join(makeScratch(), "locks");
  chmodSync(join(directory, ".."), 0o755);
  mkdirSync(directory);
  chownSync(directory, uid, gid);
  chmodSync(directory, mode);
  return join(directory, "job.lock");
}

function mustTakeAndRelease(user: User, lock: string): void {
  for (const verb of ["acquire", "release"]) {
    const { status, said } = holdfast(user, verb, lock);
    expect({ verb, uid: user.uid, status, said: status === 0 ? "" : said }).toEqual({
      verb,
      uid: user.uid,
      status: 0,
      said: "",
    });
  }
}

describe.runIf(isRoot)("a lock that users share", () => {
  // Root acquired once in a directory like /tmp; after that no other user could release a lock
  // there.
  test("in a sticky directory can be taken and released by each of them, whichever user made the guard", () => {
    for (const users of [
      [root, ada, bob],
      [ada, root],
    ]) {
      const lock = newLock(0o1777);
      for (const user of users) mustTakeAndRelease(user, lock);
      expect(statSync(`${lock}.guard`).mode & 0o777).toBe(0o666);
      expect(readdirSync(join(lock, ".."))).toEqual(["job.lock.guard"]);
    }
  });

  test("in a directory of a group can be used by the group, and its guard by no other user", () => {
    const lock = newLock(0o775, { uid: 0, gid: crew });
    for (const user of [root, { uid: ada.uid, gid: crew }, { uid: bob.uid, gid: crew }]) mustTakeAndRelease(user, lock);
    const { mode, gid } = statSync(`${lock}.guard`);
    expect({ mode: mode & 0o777, gid }).toEqual({ mode: 0o660, gid: crew });
  });

  test("in a directory of one user has a guard of that user's own", () => {
    const lock = newLock(0o755);
    mustTakeAndRelease(root, lock);
    expect(statSync(`${lock}.guard`).mode & 0o777).toBe(0o600);
  });

  test("in a directory of one user can be used by that user after root has used it", () => {
    const lock = newLock(0o755, ada);
    for (const user of [root, ada]) mustTakeAndRelease(user, lock);
    const { mode, uid } = statSync(`${lock}.guard`);
    expect({ mode: mode & 0o777, uid }).toEqual({ mode: 0o600, uid: ada.uid });
  });

  test("in a directory of a group that its owner is not in does not open the guard to the owner's own group", () => {
    const lock = newLock(0o775, { uid: ada.uid, gid: crew });
    mustTakeAndRelease(ada, lock);
    const { mode, gid } = statSync(`${lock}.guard`);
    expect({ mode: mode & 0o777, gid }).toEqual({ mode: 0o600, gid: ada.gid });
    // The group is refused before it takes what it could not release.
    expect(holdfast({ uid: bob.uid, gid: crew }, "acquire", lock).status).toBe(1);
    expect(existsSync(lock)).toBe(false);
  });

  test("is refused before it is taken to a user who may not open the guard, and so could not release it", () => {
    const lock = newLock(0o1777);
    writeFileSync(`${lock}.guard`, "", { mode: 0o600 });
    const { status, said } = holdfast(ada, "acquire", lock);
    expect({ status, said }).toEqual({ status: 1, said: expect.stringContaining("job.lock.guard") as string });
    expect(existsSync(lock)).toBe(false);
  });

  test("is refused where a symbolic link was put in the place of the guard, and nothing is made behind it", () => {
    const lock = newLock(0o1777);
    const target = join(makeScratch(), "made-by-root");
    symlinkSync(target, `${lock}.guard`);
    for (const verb of ["acquire", "clean"]) {
      if (verb === "clean") writeFileSync(lock, "pid=4711\ntimestamp=5\n");
      const { status, said } = holdfast(root, verb, lock);
      expect({ verb, status, said }).toEqual({
        verb,
        status: 2,
        said: expect.stringContaining("is a symbolic link") as string,
      });
    }
    expect(existsSync(target)).toBe(false);
  });
});

describe("a full disk", () => {
  test("does not keep a process from releasing its lock: no process can make a guard there", async () => {
    const world = await SemaphoreWorld.make();
    const hold = await world.semaphore("ada").acquire();
    await world.advance(2 * 3_600_000);
    await world.withFault({ process: "ada", at: "create", label: "ENOSPC", lasting: false }, () => hold.release());
    expect(hold.signal.aborted).toBe(false);
    expect(Object.keys(world.tree("/shared"))).not.toContain(lockPath);
  });

  test.runIf(process.platform === "linux")("without an inode left does not, either", async (context) => {
    const directory = mountSmallDisk(context, "size=1m,nr_inodes=8");
    const lock = join(directory, "job.lock");
    // Old enough at once to need the guard, which does not exist yet.
    const hold = await new Semaphore(lock, { staleMs: 0 }).acquire();
    for (let at = 0; at < 20; at++)
      try {
        writeFileSync(join(directory, `filler-${at}`), "");
      } catch {
        break;
      }
    await hold.release();
    expect(hold.signal.aborted).toBe(false);
    expect(existsSync(lock)).toBe(false);
  });
});
