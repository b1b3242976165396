// Which calls are used on which share. What they are for, that no server delegates a file and no
// client remembers an absence, only real ones show: `npm run test:shares`.
import { chmodSync, constants, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Volume } from "../../src/ports/disk.ts";
import { pooledCalls, type FileCalls } from "../../src/ports/node/disk/file-calls.ts";
import { nfsCalls, nfsCallsOver, openingDirectories } from "../../src/ports/node/disk/nfs-calls.ts";
import { callsFor, otherCalls } from "../../src/ports/node/disk/volume-calls.ts";
import { checkingAbsencesByListing, smbCalls } from "../../src/ports/node/disk/smb-calls.ts";
import { NodeDisk } from "../../src/ports/node/disk/disk.ts";
import type { NodeFile } from "../../src/ports/node/disk/file.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";

const share = (type: string, ...mountOptions: string[]): Volume => ({ kind: "network", type, mountOptions });
const absence = (): Error => Object.assign(new Error("not there"), { code: "ENOENT" });

/**
 * Calls of a client that remembers of `absent` that they were not there; `forget` is told of each
 * directory that it opens or lists.
 */
function rememberingCalls(
  absent: Set<string>,
  forget: (how: "open" | "list", directory: string) => void,
  asked: string[] = [],
): FileCalls {
  const mustNotRemember = (path: string): void => {
    for (let above = path; above !== dirname(above); above = dirname(above)) if (absent.has(above)) throw absence();
  };
  return {
    ...pooledCalls,
    open: async (path, flags, mode) => {
      asked.push("open");
      mustNotRemember(path);
      const fd = await pooledCalls.open(path, flags, mode);
      forget("open", path);
      return fd;
    },
    openBulk: async (path) => {
      mustNotRemember(path);
      return await pooledCalls.openBulk(path);
    },
    listSome: async (path, count) => {
      mustNotRemember(path);
      return await pooledCalls.listSome(path, count);
    },
    hasName: async (path, isWanted) => {
      asked.push("list");
      mustNotRemember(path);
      forget("list", path);
      return await pooledCalls.hasName(path, isWanted);
    },
  };
}

describe("the calls for a share", () => {
  it("ask for no delegation on NFS 4, whose client on Linux knows how", () => {
    expect(callsFor(share("nfs4", "lookupcache=pos"), "linux")).toBe(nfsCalls);
    for (const type of ["cifs", "smb3"]) expect(callsFor(share(type), "linux")).toBe(smbCalls);
    for (const type of ["fuse.sshfs", "9p"]) expect(callsFor(share(type), "linux")).toBe(otherCalls);
    expect(callsFor(share("nfs4"), "darwin")).toBe(otherCalls);
  });

  it("believe an absence on NFS only where the kernel shows that the client remembers none", () => {
    for (const option of ["lookupcache=pos", "lookupcache=none"]) {
      expect(callsFor(share("nfs4", "rw", option), "linux")).toBe(nfsCalls);
      expect(callsFor(share("nfs", "rw", option), "linux")).toBe(pooledCalls);
    }
    for (const options of [[], ["rw", "vers=4.2"], ["lookupcache=all"]]) {
      expect(callsFor(share("nfs4", ...options), "linux")).not.toBe(nfsCalls);
      expect(callsFor(share("nfs", ...options), "linux")).not.toBe(pooledCalls);
    }
  });

  it.runIf(process.platform === "linux")(
    "read in bulk through the page cache, and nothing else, on NFS 4",
    async () => {
      const path = join(makeScratch(), "large");
      writeFileSync(path, "x");
      const disk = new NodeDisk(share("nfs4"), nfsCalls);
      for (const isBulk of [true, false]) {
        const file = (await disk.open(path, "read", { isBulk })) as NodeFile;
        const flags = /flags:\s+([0-7]+)/.exec(readFileSync(`/proc/self/fdinfo/${file.fd}`, "utf8"))?.[1];
        expect((Number.parseInt(flags ?? "", 8) & constants.O_DIRECT) === 0).toBe(isBulk);
        await file.close();
      }
    },
  );

  it.runIf(process.platform === "linux")(
    "open a directory as ever, which cannot be opened for direct I/O",
    async () => {
      const root = makeScratch();
      mkdirSync(join(root, "d"));
      await nfsCalls.close(await nfsCalls.open(join(root, "d"), "r"));
      await expect(nfsCalls.isThere(join(root, "d"))).resolves.toBe(true);
      await expect(nfsCalls.isThere(join(root, "e"))).resolves.toBe(false);
      await expect(nfsCalls.open(join(root, "e"), "r")).rejects.toMatchObject({ code: "ENOENT" });
    },
  );
});

describe("opens and closes of one file by one process on NFS 4", () => {
  interface Held {
    readonly what: string;
    readonly comeBack: (fd?: number) => void;
    readonly fail: (error: Error) => void;
  }

  /** Calls that come back when they are told to, and those that are under way. */
  function heldCalls(): { calls: FileCalls; underWay: Held[] } {
    const underWay: Held[] = [];
    const held = async (what: string): Promise<number> => {
      let call: Held | undefined;
      try {
        return await new Promise((resolve, reject) => {
          call = { what, comeBack: (fd = 0) => resolve(fd), fail: reject };
          underWay.push(call);
        });
      } finally {
        underWay.splice(underWay.indexOf(call as Held), 1);
      }
    };
    const open = (path: string): Promise<number> => held(`open ${path}`);
    const close = async (fd: number): Promise<void> => void (await held(`close ${fd}`));
    return { calls: nfsCallsOver({ ...pooledCalls, open, openBulk: open, close }), underWay };
  }

  /** All that can be called without another answer has been called by then. */
  async function expectUnderWay(underWay: readonly Held[], ...names: string[]): Promise<void> {
    await new Promise(setImmediate);
    expect(underWay.map(({ what }) => what)).toEqual(names);
  }

  it("take turns, and those of other files do not wait for them", async () => {
    const { calls, underWay } = heldCalls();
    const first = calls.open("a", "r");
    const second = calls.openBulk("a");
    await expectUnderWay(underWay, "open a");
    underWay[0]?.comeBack(1);
    const closing = calls.close(await first);
    // The second open came before this close.
    await expectUnderWay(underWay, "open a");
    const other = calls.open("b", "r");
    await expectUnderWay(underWay, "open a", "open b");
    underWay[1]?.comeBack(3);
    await other;
    underWay[0]?.comeBack(2);
    await second;
    const asking = calls.isThere("a");
    await expectUnderWay(underWay, "close 1");
    underWay[0]?.comeBack();
    await closing;
    await expectUnderWay(underWay, "open a");
    underWay[0]?.comeBack(1);
    await expectUnderWay(underWay, "close 1");
    underWay[0]?.comeBack();
    await expect(asking).resolves.toBe(true);
  });

  it("go on after one that has failed", async () => {
    const { calls, underWay } = heldCalls();
    const [failing, next] = [calls.open("a", "r"), calls.open("a", "r")];
    await expectUnderWay(underWay, "open a");
    underWay[0]?.fail(absence());
    await expect(failing).rejects.toThrow("not there");
    await expectUnderWay(underWay, "open a");
    underWay[0]?.comeBack(1);
    await expect(next).resolves.toBe(1);
  });

  it("take the turns of their own file, when its number was that of another one a moment ago", async () => {
    const { calls, underWay } = heldCalls();
    const first = calls.open("a", "r");
    underWay[0]?.comeBack(1);
    const closing = calls.close(await first);
    await expectUnderWay(underWay, "close 1");
    // The kernel has closed it, and gives its number to the next file before the answer is here.
    const next = calls.open("b", "r");
    await expectUnderWay(underWay, "close 1", "open b");
    underWay[1]?.comeBack(1);
    await next;
    underWay[0]?.comeBack();
    await closing;
    const closingNext = calls.close(await next);
    const again = calls.open("b", "r");
    await expectUnderWay(underWay, "close 1");
    underWay[0]?.comeBack();
    await closingNext;
    await expectUnderWay(underWay, "open b");
    underWay[0]?.comeBack(1);
    await again;
  });

  it("need no turn for a directory, which has no state that they could mix up", async () => {
    const { calls, underWay } = heldCalls();
    const first = calls.open("d", "r");
    underWay[0]?.fail(Object.assign(new Error("no direct I/O"), { code: "EINVAL" }));
    await expectUnderWay(underWay, "open d");
    underWay[0]?.comeBack(1);
    const closing = calls.close(await first);
    const next = calls.open("d", "r");
    await expectUnderWay(underWay, "close 1", "open d");
    for (const { comeBack } of [...underWay]) comeBack(2);
    await Promise.all([closing, next]);
  });
});

// How a client is made to forget that a name was not there, and by which calls.
describe.each([
  ["NFS, before the directory was opened", "open" as const, openingDirectories],
  ["SMB, before the directory was listed", "list" as const, checkingAbsencesByListing],
])("an absence is not believed on %s", (_, how, wary) => {
  function world() {
    const root = makeScratch();
    const absent = new Set<string>();
    const asked: string[] = [];
    const forget = (by: "open" | "list", directory: string): void => {
      if (by === how) for (const path of [...absent]) if (dirname(path) === directory) absent.delete(path);
    };
    const calls = wary(rememberingCalls(absent, forget, asked));
    return { at: (...names: string[]) => join(root, ...names), absent, asked, calls };
  }

  it("when a file is opened that another machine has made", async () => {
    const { at, absent, asked, calls } = world();
    writeFileSync(at("made"), "by another machine");
    absent.add(at("made"));
    await calls.close(await calls.open(at("made"), "r"));
    expect(asked).toEqual(["open", how, "open"]);
    absent.add(at("made"));
    await calls.close(await calls.openBulk(at("made")));
    asked.length = 0;
    await calls.close(await calls.open(at("made"), "r+"));
    expect(asked).toEqual(["open"]);
  });

  it("when the absence of directories above it is remembered too", async () => {
    const { at, absent, calls } = world();
    mkdirSync(at("a", "b"), { recursive: true });
    writeFileSync(at("a", "b", "made"), "");
    for (const path of [at("a"), at("a", "b"), at("a", "b", "made")]) absent.add(path);
    await calls.close(await calls.open(at("a", "b", "made"), "r"));
    expect(absent).toEqual(new Set());
  });

  it("when a directory is listed that another machine has made", async () => {
    const { at, absent, calls } = world();
    mkdirSync(at("a", "made"), { recursive: true });
    writeFileSync(at("a", "made", "x"), "");
    for (const path of [at("a"), at("a", "made")]) absent.add(path);
    expect(await new NodeDisk(share("test"), calls).list(at("a", "made"))).toEqual(["x"]);
    await expect(calls.listSome(at("never made"), 10)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("and is believed when it is true", async () => {
    const { at, calls } = world();
    await expect(calls.open(at("never made"), "r")).rejects.toMatchObject({ code: "ENOENT" });
    await expect(calls.open(at("no directory", "x"), "r+")).rejects.toMatchObject({ code: "ENOENT" });
    await expect(calls.look(at("never made"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("when something is looked at, of whatever kind", async () => {
    const { at, absent, calls } = world();
    mkdirSync(at("d"));
    writeFileSync(at("made"), "12345");
    for (const path of [at("d"), at("made")]) absent.add(path);
    const disk = new NodeDisk(share("test"), calls);
    expect(await disk.look(at("d"))).toMatchObject({ kind: "directory" });
    expect(await disk.look(at("made"))).toMatchObject({ kind: "file", size: 5 });
  });
});

describe("a look on a share", () => {
  it("tells the kind of what this user may not read", async () => {
    const root = makeScratch();
    writeFileSync(join(root, "secret"), "x");
    chmodSync(join(root, "secret"), 0);
    const disk = new NodeDisk(share("cifs"), smbCalls);
    await expect(asOrdinaryUser(() => disk.look(join(root, "secret")))).resolves.toMatchObject({ kind: "file" });
  });

  it("finds a name among more than 100,000 on SMB, page by page", async () => {
    const root = makeScratch();
    writeFileSync(join(root, "last"), "");
    const absent = new Set([join(root, "last")]);
    let read = 0;
    const calls = checkingAbsencesByListing({
      ...rememberingCalls(absent, () => undefined),
      // A directory whose names come one after the other, and which would fill the memory if all
      // were kept.
      hasName: (_, isWanted) => {
        for (; read < 150_000; read++) if (isWanted(`name ${read}`)) return true;
        absent.clear();
        return isWanted("last");
      },
    });
    await calls.close(await calls.open(join(root, "last"), "r"));
    expect(read).toBe(150_000);
  });
});

describe("a stale handle", () => {
  it("does not make a listing or a sync of a directory fail that has a new one", async () => {
    const root = makeScratch();
    let stale = true;
    const staleOnce = (): void => {
      if (stale) throw ((stale = false), Object.assign(new Error("stale"), { code: "Unknown system error -116" }));
    };
    const disk = new NodeDisk(share("nfs4"), {
      ...pooledCalls,
      listSome: (path, count) => (staleOnce(), pooledCalls.listSome(path, count)),
      fsync: async (fd) => (staleOnce(), pooledCalls.fsync(fd)),
    });
    expect(await disk.list(root)).toEqual([]);
    stale = true;
    await disk.syncDirectory(root);
    expect(stale).toBe(false);
  });
});
