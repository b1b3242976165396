import { describe, expect, it } from "vitest";
import { durabilityTouch } from "../../src/testing/sim/call.ts";
import type { SimDisk } from "../../src/testing/sim/disk.ts";
import type { ServerQuirks } from "../../src/testing/sim/server.ts";
import { describeDiskContract } from "../sites/contracts.ts";
import { Bench, bytesOf, textOf } from "./sim-bench.ts";

const make = (disk: SimDisk, path: string, text = ""): Promise<void> =>
  disk.createFile(path, bytesOf(text), { sync: false });
const read = async (disk: SimDisk, path: string): Promise<string> => textOf(await disk.readFile(path, 100));

// With caches on, too: as long as the answers are fresh, nothing of the contract may be lost.
const contractQuirks: Record<string, ServerQuirks> = {
  "the simulated disk": {},
  "the simulated disk with all caches": { staleListings: true, staleAbsence: true, directoryHandles: true },
  "the simulated disk with late writes": { lateWrites: true },
  "the simulated disk without upper and lower case": { caseInsensitive: true },
};
for (const [name, quirks] of Object.entries(contractQuirks)) {
  for (const profile of ["ext4-ordered", "journal", "weak", "share"] as const)
    describeDiskContract(`${name}, ${profile}`, async () => {
      const disk = new Bench(quirks, profile).disk("m1");
      await disk.mkdir("/root");
      return { disk, root: "/root" };
    });
  describeDiskContract(`${name}, in its root`, async () => ({ disk: new Bench(quirks).disk("m1"), root: "/" }));
}

describe("a disk without quirks", () => {
  it("has one answer for whatever looks, whatever other machines do", async () => {
    const bench = new Bench();
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await m2.mkdir("/d");
    const looks = [
      (disk: SimDisk) => disk.list("/d"),
      (disk: SimDisk) => disk.canOpen("/d/x"),
      (disk: SimDisk) => disk.readFile("/d/x", 10),
      (disk: SimDisk) => disk.stat("/d/x"),
      (disk: SimDisk) => disk.open("/d/x", "read"),
    ];
    for (const look of looks) expect(await m1.labelsOf(look)).toEqual([""]);
    await m2.rename("/d", "/e");
    await m2.mkdir("/d");
    await make(m2, "/d/x");
    for (const look of looks) expect(await m1.labelsOf(look)).toEqual([""]);
  });
});

describe("staleListings", () => {
  const quirks = { staleListings: true };
  const cached = "from the cache";

  it("shows a machine what it saw before, until it looks anew", async () => {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await make(m2, "/a");
    expect(await m1.answer((disk) => disk.list("/"))).toEqual(["a"]);
    await make(m2, "/b");
    await m2.unlink("/a");
    expect(await m1.answer((disk) => disk.list("/"), cached)).toEqual(["a"]);
    expect(await m1.answer((disk) => disk.list("/"), cached)).toEqual(["a"]);
    expect(await m1.answer((disk) => disk.list("/"))).toEqual(["b"]);
    expect(await m1.labelsOf((disk) => disk.list("/"))).toEqual([""]);
  });

  it("shows nothing old to a machine that never looked, and the same to all processes of one that did", async () => {
    const bench = new Bench(quirks);
    const m2 = bench.disk("m2");
    await bench.disk("m1", { process: "one" }).list("/");
    await make(m2, "/a");
    const other = bench.decided("m1", { process: "other" });
    expect(await other.answer((disk) => disk.list("/"), cached)).toEqual([]);
    expect(await bench.decided("m3").labelsOf((disk) => disk.list("/"))).toEqual([""]);
  });

  it("shows a machine what it made and removed itself", async () => {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    for (const name of ["/a", "/b", "/c"]) await make(m2, name);
    const own = bench.disk("m1");
    await own.list("/");
    await make(m2, "/theirs");
    await own.mkdir("/d");
    await own.link("/a", "/linked");
    await own.unlink("/a");
    await own.rename("/b", "/moved");
    expect(await m1.answer((disk) => disk.list("/"), cached)).toEqual(["c", "d", "linked", "moved"]);
  });

  it("shows the old names of a directory that is gone", async () => {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await m2.mkdir("/d");
    await m1.answer((disk) => disk.list("/d"));
    await m2.rmdir("/d");
    expect(await m1.answer((disk) => disk.list("/d"), cached)).toEqual([]);
    expect(await m1.answer((disk) => disk.list("/d"))).toBe("ENOENT");
  });
});

describe("staleAbsence", () => {
  const quirks = { staleAbsence: true };
  const cached = "absent, from the cache";

  it.each<[string, (disk: SimDisk) => Promise<unknown>]>([
    ["read", (disk) => disk.readFile("/x", 10)],
    ["open", (disk) => disk.open("/x", "write")],
    ["stat", (disk) => disk.stat("/x")],
    ["link", (disk) => disk.link("/x", "/y")],
    ["rename", (disk) => disk.rename("/x", "/y")],
    ["unlink", (disk) => disk.unlink("/x")],
  ])("lets a %s say that a name is absent which was when the machine last looked", async (_, action) => {
    const bench = new Bench(quirks);
    const m1 = bench.decided("m1");
    expect(await m1.answer((disk) => disk.canOpen("/x"))).toBe(false);
    await make(bench.disk("m2"), "/x");
    expect(await m1.answer(action, cached)).toBe("ENOENT");
    expect(bench.state).toBe("x=");
    expect(await m1.answer(action)).not.toBe("ENOENT");
  });

  it("lets canOpen say no, but never yes for what is gone", async () => {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await m1.answer((disk) => disk.canOpen("/x"));
    await make(m2, "/x");
    expect(await m1.answer((disk) => disk.canOpen("/x"), cached)).toBe(false);
    expect(await m1.answer((disk) => disk.canOpen("/x"))).toBe(true);
    await m2.unlink("/x");
    expect(await m1.labelsOf((disk) => disk.canOpen("/x"))).toEqual([""]);
  });

  it("is over once the machine has seen the name", async () => {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await m1.answer((disk) => disk.readFile("/x", 10));
    await make(m2, "/x", "there");
    expect(await m1.answer((disk) => disk.readFile("/x", 10))).toBe("there");
    expect(await m1.labelsOf((disk) => disk.readFile("/x", 10))).toEqual([""]);
  });

  it("is over once the machine was told that the name is taken, or saw it in a listing", async () => {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await make(m2, "/mine");
    for (const name of ["/x", "/y"]) {
      await m1.answer((disk) => disk.canOpen(name));
      await make(m2, name);
    }
    expect(await m1.answer((disk) => disk.link("/mine", "/x"))).toBe("EEXIST");
    expect(await m1.labelsOf((disk) => disk.canOpen("/x"))).toEqual([""]);
    expect(await m1.labelsOf((disk) => disk.canOpen("/y"))).toEqual(["", cached]);
    await m1.answer((disk) => disk.canOpen("/z"));
    await make(m2, "/z");
    await m1.answer((disk) => disk.list("/"));
    expect(await m1.labelsOf((disk) => disk.canOpen("/z"))).toEqual([""]);
  });

  it("is over after a link that was done and then repeated, so that the winner can see what it won", async () => {
    const bench = new Bench(quirks);
    const m1 = bench.decided("m1");
    await make(bench.disk("m2"), "/mine");
    await m1.answer((disk) => disk.canOpen("/x"));
    const repeated = "done, and the repeated request fails";
    expect(await m1.answer((disk) => disk.link("/mine", "/x"), repeated)).toBe("EEXIST");
    expect(await m1.labelsOf((disk) => disk.canOpen("/x"))).toEqual([""]);
  });

  it("comes also from what the machine removed or moved away itself", async () => {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    const own = bench.disk("m1");
    for (const name of ["/a", "/b"]) await make(m2, name);
    await own.unlink("/a");
    await own.rename("/b", "/c");
    for (const name of ["/a", "/b"]) await make(m2, name);
    for (const name of ["/a", "/b"]) expect(await m1.answer((disk) => disk.canOpen(name), cached)).toBe(false);
  });

  it("hides everything below a directory that was absent, and what could be made there", async () => {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    expect(await m1.answer((disk) => disk.readFile("/d/x", 10))).toBe("ENOENT");
    await m2.mkdir("/d");
    await make(m2, "/d/y", "there");
    await make(m2, "/mine");
    expect(await m1.answer((disk) => disk.readFile("/d/y", 10), cached)).toBe("ENOENT");
    expect(await m1.answer((disk) => disk.link("/mine", "/d/z"), cached)).toBe("ENOENT");
    expect(await m1.answer((disk) => disk.list("/d"), cached)).toBe("ENOENT");
    expect(await m1.answer((disk) => disk.readFile("/d/y", 10))).toBe("there");
    expect(await m1.labelsOf((disk) => disk.readFile("/d/y", 10))).toEqual([""]);
  });

  it("is told apart in what the explorer remembers of a machine", async () => {
    const bench = new Bench(quirks);
    const before = bench.machine("m1").describeCaches();
    await bench.disk("m1").canOpen("/x");
    expect(bench.machine("m1").describeCaches()).not.toBe(before);
  });
});

describe("directoryHandles", () => {
  const quirks = { directoryHandles: true };
  const old = "through the directory found before under /d";

  /**
   * The first machine knows `/d`, which holds `/d/a`; then the second moves it to `/e` and makes
   * another one.
   */
  async function moved(): Promise<Bench> {
    const bench = new Bench(quirks);
    const [m1, m2] = [bench.disk("m1"), bench.disk("m2")];
    await m2.mkdir("/d");
    await make(m2, "/d/a", "old");
    await make(m2, "/mine", "mine");
    await m1.canOpen("/d/a");
    await m2.rename("/d", "/e");
    await m2.mkdir("/d");
    return bench;
  }

  it("lets a link succeed in a directory that another machine has moved away", async () => {
    const bench = await moved();
    expect(await bench.decided("m1").answer((disk) => disk.link("/mine", "/d/x"), old)).toBe("ok");
    expect(bench.state).toBe("d/ e/ e/a=old e/x=mine mine=mine");
  });

  it.each<[string, (disk: SimDisk) => Promise<unknown>, unknown, string]>([
    ["create", (disk) => disk.open("/d/x", "create"), expect.anything(), "d/ e/ e/a=old e/x= mine=mine"],
    ["mkdir", (disk) => disk.mkdir("/d/x"), "ok", "d/ e/ e/a=old e/x/ mine=mine"],
    ["unlink", (disk) => disk.unlink("/d/a"), "ok", "d/ e/ mine=mine"],
    ["rename in", (disk) => disk.rename("/mine", "/d/x"), "ok", "d/ e/ e/a=old e/x=mine"],
    ["rename out", (disk) => disk.rename("/d/a", "/x"), "ok", "d/ e/ mine=mine x=old"],
    ["rename within", (disk) => disk.rename("/d/a", "/d/x"), "ok", "d/ e/ e/x=old mine=mine"],
    ["read", (disk) => disk.readFile("/d/a", 10), "old", "d/ e/ e/a=old mine=mine"],
    ["can open", (disk) => disk.canOpen("/d/a"), true, "d/ e/ e/a=old mine=mine"],
    ["list", (disk) => disk.list("/d"), ["a"], "d/ e/ e/a=old mine=mine"],
    ["sync directory", (disk) => disk.syncDirectory("/d"), expect.any(String), "d/ e/ e/a=old mine=mine"],
  ])("lets a %s act there too", async (_, action, answer, state) => {
    const bench = await moved();
    expect(await bench.decided("m1").answer(action, old)).toEqual(answer);
    expect(bench.state).toBe(state);
  });

  it("is over once the machine has looked anew, and never concerns a machine that did not know the directory", async () => {
    const bench = await moved();
    const m1 = bench.decided("m1");
    expect(await m1.answer((disk) => disk.canOpen("/d/a"))).toBe(false);
    expect(await m1.labelsOf((disk) => disk.canOpen("/d/a"))).toEqual([""]);
    expect(await bench.decided("m3").labelsOf((disk) => disk.canOpen("/d/a"))).toEqual([""]);
  });

  it("is over also when the machine has looked anew and found nothing", async () => {
    const bench = await moved();
    await bench.disk("m2").rmdir("/d");
    const m1 = bench.decided("m1");
    expect(await m1.answer((disk) => disk.canOpen("/d/a"), old)).toBe(true);
    expect(await m1.answer((disk) => disk.canOpen("/d/a"))).toBe(false);
    expect(await m1.labelsOf((disk) => disk.canOpen("/d/a"))).toEqual([""]);
  });

  it("says ESTALE when the directory was removed", async () => {
    const bench = await moved();
    const m2 = bench.disk("m2");
    await m2.unlink("/e/a");
    await m2.rmdir("/e");
    expect(await bench.decided("m1").answer((disk) => disk.link("/mine", "/d/x"), old)).toBe("ESTALE");
    expect(bench.state).toBe("d/ mine=mine");
  });

  it("is told apart in what the explorer remembers: which directory a machine takes for the one under a name, and where that is now", async () => {
    const keyOf = (bench: Bench): string => bench.machine("m1").describeCaches() + bench.server.fingerprint(false);
    const [one, other] = [await moved(), await moved()];
    expect(keyOf(one)).toBe(keyOf(other));
    await other.disk("m2").rename("/d", "/f");
    await other.disk("m2").rename("/e", "/d");
    await other.disk("m2").rename("/f", "/e");
    expect(keyOf(one)).not.toBe(keyOf(other));
  });
});

describe("a stat on a share", () => {
  it("may tell of a file that another machine has replaced by a directory, until the machine looks", async () => {
    const bench = new Bench({ fileHandles: true });
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await make(m2, "/x");
    await m1.answer((disk) => disk.stat("/x"));
    await m2.unlink("/x");
    await m2.mkdir("/x");
    expect(await m1.answer((disk) => disk.stat("/x"), "from the cache")).toMatchObject({ kind: "file" });
    expect(await m1.labelsOf((disk) => disk.look("/x"))).toEqual([""]);
    expect(await m1.answer((disk) => disk.look("/x"))).toMatchObject({ kind: "directory" });
    expect(await m1.labelsOf((disk) => disk.stat("/x"))).toEqual([""]);
  });

  it("may tell of a directory that another machine has removed, until the machine looks", async () => {
    const bench = new Bench({ directoryHandles: true });
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await m2.mkdir("/d");
    await m1.answer((disk) => disk.list("/d"));
    await m2.rmdir("/d");
    expect(await m1.answer((disk) => disk.stat("/d"), "from the cache")).toMatchObject({ kind: "directory" });
    expect(await m1.answer((disk) => disk.look("/d"))).toBe("ENOENT");
    expect(await m1.labelsOf((disk) => disk.stat("/d"))).toEqual([""]);
  });

  it("may miss what another machine has made, and a look does not", async () => {
    const bench = new Bench({ staleAbsence: true });
    const [m1, m2] = [bench.decided("m1"), bench.disk("m2")];
    await m1.answer((disk) => disk.look("/x"));
    await make(m2, "/x");
    expect(await m1.answer((disk) => disk.stat("/x"), "absent, from the cache")).toBe("ENOENT");
    expect(await m1.labelsOf((disk) => disk.look("/x"))).toEqual([""]);
    expect(await m1.answer((disk) => disk.look("/x"))).toMatchObject({ kind: "file" });
    expect(await m1.labelsOf((disk) => disk.stat("/x"))).toEqual([""]);
  });
});

describe("staleHandles", () => {
  it("lets every change say ESTALE, done or not, and no look", async () => {
    const bench = new Bench({ staleHandles: true });
    const m1 = bench.decided("m1");
    await make(bench.disk("m1"), "/a");
    expect(await m1.answer((disk) => disk.rename("/a", "/b"), "a handle is stale")).toBe("ESTALE");
    expect(bench.state).toBe("a=");
    expect(await m1.answer((disk) => disk.rename("/a", "/b"), "done, and a handle is stale")).toBe("ESTALE");
    expect(bench.state).toBe("b=");
    const changes = [
      (disk: SimDisk) => disk.mkdir("/d"),
      (disk: SimDisk) => disk.link("/b", "/c"),
      (disk: SimDisk) => disk.unlink("/b"),
      (disk: SimDisk) => disk.rmdir("/d"),
    ];
    for (const change of changes) expect(await m1.labelsOf(change)).toContain("a handle is stale");
    for (const look of [(disk: SimDisk) => disk.stat("/b"), (disk: SimDisk) => disk.look("/b")])
      expect(await m1.labelsOf(look)).toEqual([""]);
  });
});

describe("lateWrites", () => {
  const quirks = { lateWrites: true };

  async function written(): Promise<{ bench: Bench; file: Awaited<ReturnType<SimDisk["open"]>> }> {
    const bench = new Bench(quirks);
    const file = await bench.disk("m1").open("/a", "create");
    await file.write(0, bytesOf("late"));
    return { bench, file };
  }

  it("shows what was written to the own machine at once, and to others not before a sync", async () => {
    const { bench, file } = await written();
    expect(textOf(await file.read(0, 10))).toBe("late");
    expect((await file.stat()).size).toBe(4);
    expect(await read(bench.disk("m1", { process: "another" }), "/a")).toBe("late");
    expect((await bench.disk("m1").stat("/a")).size).toBe(4);
    expect(await read(bench.disk("m2"), "/a")).toBe("");
    await file.sync();
    expect(await read(bench.disk("m2"), "/a")).toBe("late");
  });

  it("sends it at the close", async () => {
    const { bench, file } = await written();
    await file.close();
    expect(await read(bench.disk("m2"), "/a")).toBe("late");
    expect(bench.server.handles.size).toBe(0);
  });

  it("sends it when the process is killed, because its kernel lives on", async () => {
    const { bench } = await written();
    bench.server.closeHandlesOf("m1");
    expect(bench.state).toBe("a=late");
  });

  it("sends a file as a whole, whichever process of the machine asks for it", async () => {
    const { bench } = await written();
    const other = await bench.disk("m1", { process: "other" }).open("/a", "write");
    await other.write(4, bytesOf("r"));
    await other.sync();
    expect(bench.state).toBe("a=later");
  });

  it("loses it when the sync or the close fails, and a second sync says that all is well", async () => {
    for (const operation of ["sync", "close"] as const) {
      const bench = new Bench(quirks);
      await make(bench.disk("m1"), "/a", "kept");
      const failing = bench.decided("m1", { errors: { errnos: ["EIO"], operations: [operation] } });
      const begun = await failing.begin(async (disk) => {
        const file = await disk.open("/a", "write");
        await file.write(0, bytesOf("late"));
        await file[operation]();
      });
      for (const label of ["", "", "EIO"]) await failing.take(label);
      expect(begun.answer).toBe("EIO");
      await (await bench.disk("m1").open("/a", "write")).sync();
      expect(bench.state).toBe("a=kept");
    }
  });

  it("is off by default: others see a write at once", async () => {
    const bench = new Bench();
    const file = await bench.disk("m1").open("/a", "create");
    await file.write(0, bytesOf("now"));
    expect(await read(bench.disk("m2"), "/a")).toBe("now");
  });
});

describe("a file system that does not keep its promises", () => {
  it("has no hard links with noHardLinks", async () => {
    const bench = new Bench({ noHardLinks: true });
    const m1 = bench.disk("m1");
    await make(m1, "/a");
    await expect(m1.link("/a", "/b")).rejects.toMatchObject({ errno: "EPERM" });
    expect(bench.state).toBe("a=");
  });

  it("cannot sync directories with noDirectorySync", async () => {
    const bench = new Bench({ noDirectorySync: true });
    await expect(bench.disk("m1").syncDirectory("/")).rejects.toMatchObject({ errno: "EINVAL" });
  });

  it("tells two creators that they made one name with exclusiveCreateReplaces, and has the content of the later", async () => {
    const bench = new Bench({ exclusiveCreateReplaces: true });
    await make(bench.disk("m1"), "/a", "the first");
    await make(bench.disk("m2"), "/a", "second");
    expect(bench.state).toBe("a=second");
    expect(bench.crashStates).toEqual(["a=", "a=______", "a=___ond", "a=sec", "a=second"]);
    await bench.disk("m1").mkdir("/d");
    await expect(make(bench.disk("m1"), "/d")).rejects.toMatchObject({ errno: "EEXIST" });
  });

  it("replaces a taken name by a link with linkReplaces, and loses none when there is nothing to link", async () => {
    const bench = new Bench({ linkReplaces: true });
    const m1 = bench.disk("m1");
    await make(m1, "/a", "mine");
    await make(m1, "/b", "theirs");
    await m1.link("/a", "/b");
    expect(bench.state).toBe("a=mine b=mine");
    await expect(m1.link("/missing", "/b")).rejects.toMatchObject({ errno: "ENOENT" });
    await expect(m1.link("/a", "/b")).rejects.toMatchObject({ errno: "EEXIST" });
    expect(bench.state).toBe("a=mine b=mine");
  });

  it("refuses a rename over a file with renameRefusesToReplace", async () => {
    const bench = new Bench({ renameRefusesToReplace: true });
    const m1 = bench.disk("m1");
    await make(m1, "/a", "new");
    await make(m1, "/b", "old");
    await expect(m1.rename("/a", "/b")).rejects.toMatchObject({ errno: "EEXIST" });
    await expect(m1.rename("/missing", "/b")).rejects.toMatchObject({ errno: "ENOENT" });
    await m1.rename("/a", "/c");
    expect(bench.state).toBe("b=old c=new");
  });

  it("does not let go of a file that anybody has open with busyWhileOpen", async () => {
    const bench = new Bench({ busyWhileOpen: true });
    const m1 = bench.disk("m1");
    await m1.mkdir("/d");
    for (const name of ["/d/a", "/b"]) await make(m1, name);
    const file = await bench.disk("m2").open("/d/a", "read");
    const refused = [m1.unlink("/d/a"), m1.rename("/d/a", "/c"), m1.rename("/b", "/d/a"), m1.rename("/d", "/e")];
    for (const each of refused) await expect(each).rejects.toMatchObject({ errno: "EBUSY" });
    await m1.link("/d/a", "/linked");
    await file.close();
    await m1.rename("/b", "/d/a");
    await m1.rename("/d", "/e");
    const lost = await bench.disk("m2").open("/e/a", "read");
    await expect(m1.unlink("/e/a")).rejects.toMatchObject({ errno: "EBUSY" });
    bench.server.closeHandlesOf("m2");
    await m1.unlink("/e/a");
    expect(bench.state).toBe("e/ linked=");
    await lost.close();
  });

  it("keeps the name of a removed file until it is closed, and lets nobody use it, with pendingDeletes", async () => {
    const bench = new Bench({ pendingDeletes: true });
    const m1 = bench.disk("m1");
    await m1.mkdir("/d");
    await make(m1, "/d/a", "text");
    await make(m1, "/b");
    const file = await bench.disk("m2").open("/d/a", "read");
    const again = await m1.open("/d/a", "read");
    await m1.unlink("/d/a");
    const refused = [m1.stat("/d/a"), m1.open("/d/a", "read"), m1.link("/b", "/d/a"), m1.rename("/b", "/d/a")];
    for (const each of [...refused, make(m1, "/d/a"), m1.unlink("/d/a"), m1.canOpen("/d/a")])
      await expect(each).rejects.toMatchObject({ errno: "EPERM" });
    await expect(m1.rmdir("/d")).rejects.toMatchObject({ errno: "ENOTEMPTY" });
    expect(Buffer.from(await file.read(0, 10)).toString()).toBe("text");
    await file.close();
    expect(await m1.list("/d")).toEqual(["a"]);
    await again.close();
    expect(await m1.list("/d")).toEqual([]);
    await make(m1, "/d/a", "new");
    const lost = await bench.disk("m2").open("/d/a", "read");
    await m1.unlink("/d/a");
    bench.server.closeHandlesOf("m2");
    expect(bench.state).toBe("b= d/");
    await lost.close();
  });

  it("replaces no open file, and moves no directory with one, with busyRenames", async () => {
    const bench = new Bench({ busyRenames: true });
    const m1 = bench.disk("m1");
    await m1.mkdir("/d");
    for (const name of ["/d/a", "/b"]) await make(m1, name);
    const file = await bench.disk("m2").open("/d/a", "read");
    for (const each of [m1.rename("/b", "/d/a"), m1.rename("/d", "/e")])
      await expect(each).rejects.toMatchObject({ errno: "EPERM" });
    await m1.rename("/d/a", "/c");
    await m1.rename("/d", "/e");
    await file.close();
    await m1.rename("/b", "/c");
    expect(bench.state).toBe("c= e/");
  });

  it("replaces no directory with directoriesStay", async () => {
    const m1 = new Bench({ directoriesStay: true }).disk("m1");
    for (const name of ["/d", "/e"]) await m1.mkdir(name);
    await make(m1, "/a");
    for (const from of ["/d", "/a"]) await expect(m1.rename(from, "/e")).rejects.toMatchObject({ errno: "EPERM" });
    await m1.rename("/d", "/f");
  });

  it("lets a directory replace a file with filesYield", async () => {
    const bench = new Bench({ filesYield: true });
    const m1 = bench.disk("m1");
    await m1.mkdir("/d");
    await make(m1, "/a");
    await m1.rename("/d", "/a");
    expect(bench.state).toBe("a/");
  });

  it("keeps a file for one that does not share it, with unshared", async () => {
    const bench = new Bench({ unshared: ["m2"] });
    const [m1, scanner] = [bench.disk("m1"), bench.disk("m2")];
    for (const name of ["/a", "/b"]) await make(m1, name);
    const file = await scanner.open("/a", "read");
    const refused = [m1.open("/a", "read"), m1.readFile("/a", 9), m1.unlink("/a"), m1.rename("/a", "/c")];
    for (const each of [...refused, m1.rename("/b", "/a")])
      await expect(each).rejects.toMatchObject({ errno: "EBUSY" });
    await m1.stat("/a");
    await file.close();
    const own = await m1.open("/a", "read");
    await expect(scanner.open("/a", "read")).rejects.toMatchObject({ errno: "EBUSY" });
    await own.close();
    await m1.rename("/a", "/c");
    expect(bench.state).toBe("b= c=");
  });

  it("takes names that differ in case for one with caseInsensitive, and shows them as they were made", async () => {
    const bench = new Bench({ caseInsensitive: true });
    const m1 = bench.disk("m1");
    await m1.mkdir("/Dir");
    await make(m1, "/dir/Name", "x");
    expect(await read(m1, "/DIR/nAME")).toBe("x");
    await expect(make(m1, "/dir/NAME")).rejects.toMatchObject({ errno: "EEXIST", path: "/dir/NAME" });
    await expect(m1.link("/dir/name", "/DIR/NAME")).rejects.toMatchObject({ errno: "EEXIST" });
    expect([await m1.list("/"), await m1.list("/dir")]).toEqual([["Dir"], ["Name"]]);
    const [one, other] = [bench.decided("m1"), bench.decided("m2")];
    await one.begin((disk) => disk.unlink("/dir/NAME"));
    await other.begin((disk) => disk.canOpen("/Dir/name"));
    expect(one.call.touches[0]?.what).toBe(other.call.touches[0]?.what);
    await one.take();
    expect(bench.state).toBe("Dir/");
  });

  it("tells names apart by default that differ in case", async () => {
    const bench = new Bench();
    await make(bench.disk("m1"), "/a");
    await make(bench.disk("m1"), "/A");
    expect(bench.state).toBe("A= a=");
  });

  it("stamps files by its own clock, as coarse as mtimeGranularityMs and as wrong as clockOffsetMs", async () => {
    const stamps: number[] = [];
    for (const quirks of [{}, { mtimeGranularityMs: 2000 }, { clockOffsetMs: -5000 }]) {
      const bench = new Bench(quirks);
      bench.nowMs = 1_003_999;
      await make(bench.disk("m1"), "/a", "x");
      stamps.push((await bench.disk("m1").stat("/a")).mtimeMs);
    }
    expect(stamps).toEqual([1_003_999, 1_002_000, 998_999]);
  });
});

describe("trouble on the way", () => {
  const lost = "done, but the reply is lost";
  const repeated = "done, and the repeated request fails";

  const changes: [string, (disk: SimDisk) => Promise<unknown>, string, string][] = [
    ["create", (disk) => disk.open("/x", "create"), "EEXIST", "a=1 d/ x="],
    ["link", (disk) => disk.link("/a", "/x"), "EEXIST", "a=1 d/ x=1"],
    ["rename", (disk) => disk.rename("/a", "/x"), "ENOENT", "d/ x=1"],
    ["unlink", (disk) => disk.unlink("/a"), "ENOENT", "d/"],
    ["mkdir", (disk) => disk.mkdir("/x"), "EEXIST", "a=1 d/ x/"],
    ["rmdir", (disk) => disk.rmdir("/d"), "ENOENT", "a=1"],
  ];
  async function prepared(): Promise<Bench> {
    const bench = new Bench();
    await make(bench.disk("m1"), "/a", "1");
    await bench.disk("m1").mkdir("/d");
    return bench;
  }

  it.each(changes)("a %s whose reply is lost is done, and says EIO", async (_, action, _errno, state) => {
    const bench = await prepared();
    expect(await bench.decided("m1").answer(action, lost)).toBe("EIO");
    expect(bench.state).toBe(state);
  });

  it.each(changes)(
    "a %s that is sent twice is done, and says what the second was told",
    async (_, action, errno, state) => {
      const bench = await prepared();
      expect(await bench.decided("m1").answer(action, repeated)).toBe(errno);
      expect(bench.state).toBe(state);
    },
  );

  it.each(changes)("a %s that fails is not done", async (_, action) => {
    const bench = await prepared();
    const failing = bench.decided("m1", { errors: { errnos: ["EIO", "ENOSPC"] } });
    expect(await failing.answer(action, "EIO")).toBe("EIO");
    expect(await failing.answer(action, "ENOSPC")).toBe("ENOSPC");
    expect(bench.state).toBe("a=1 d/");
  });

  it("does not make a lost reply of one that said no", async () => {
    const bench = await prepared();
    expect(await bench.decided("m1").answer((disk) => disk.mkdir("/d"), lost)).toBe("EEXIST");
  });

  it("has no lost reply for what may be asked again", async () => {
    const bench = await prepared();
    const m1 = bench.decided("m1");
    const looks = [
      (disk: SimDisk) => disk.readFile("/a", 10),
      (disk: SimDisk) => disk.list("/"),
      (disk: SimDisk) => disk.stat("/a"),
      (disk: SimDisk) => disk.syncDirectory("/"),
    ];
    for (const look of looks) expect(await m1.labelsOf(look)).toEqual([""]);
  });

  it("injects failures only into the operations that are named", async () => {
    const bench = await prepared();
    const failing = bench.decided("m1", { errors: { errnos: ["EIO"], operations: ["link"] } });
    expect(await failing.labelsOf((disk) => disk.link("/a", "/b"))).toEqual(["", lost, repeated, "EIO"]);
    expect(await failing.labelsOf((disk) => disk.unlink("/b"))).toEqual(["", lost, repeated]);
  });

  it("says of each outcome what trouble it is, so that a scenario can limit it", async () => {
    const bench = await prepared();
    const failing = bench.decided("m1", { errors: { errnos: ["EIO"] } });
    await failing.begin((disk) => disk.unlink("/a"));
    const troubles = failing.call.outcomes().map(({ trouble }) => trouble);
    expect(troubles).toEqual([undefined, "lostReply", "retransmit", "error"]);
  });

  it("leaves a file that was made but not written when the write fails", async () => {
    const bench = new Bench();
    const failing = bench.decided("m1", { errors: { errnos: ["ENOSPC"], operations: ["write"] } });
    const begun = await failing.begin((disk) => make(disk, "/a", "text"));
    await failing.take();
    await failing.take("ENOSPC");
    expect([begun.answer, bench.state]).toEqual(["ENOSPC", "a="]);
  });
});

describe("what the explorer is told of a call", () => {
  const begun = async (action: (disk: SimDisk) => Promise<unknown>, isPermanent = (_path: string) => false) => {
    const bench = new Bench();
    await make(bench.disk("m2"), "/a");
    const m1 = bench.decided("m1", { isPermanent });
    await m1.begin(action);
    return { bench, m1 };
  };

  it("is which paths it looks at and which it changes", async () => {
    const { m1 } = await begun((disk) => disk.link("/a", "/b"));
    expect(m1.call.touches).toEqual([
      { what: "/a", changes: false },
      { what: "/b", changes: true },
    ]);
  });

  it("is that a sync of a directory depends on whether the directory is there, unless it is permanent", async () => {
    const sync = (disk: SimDisk): Promise<unknown> => disk.syncDirectory("/d");
    const whats = async (isPermanent?: (path: string) => boolean): Promise<string[]> =>
      (await begun(sync, isPermanent)).m1.call.touches.map(({ what }) => what);
    expect(await whats()).toEqual([durabilityTouch, "/d/(itself)"]);
    expect(await whats(() => true)).toEqual([durabilityTouch]);
  });

  it("is that a write through a handle touches everything once the file has another name", async () => {
    const bench = new Bench();
    const m1 = bench.decided("m1");
    await m1.begin(async (disk) => (await disk.open("/a", "create")).write(0, bytesOf("x")));
    await m1.take();
    expect(m1.call.touches).toEqual([{ what: "/a", changes: true }]);
    await bench.disk("m2").link("/a", "/b");
    expect(m1.call.touches).toEqual([{ what: "", changes: true }]);
    await bench.disk("m2").unlink("/a");
    expect(m1.call.touches).toEqual([{ what: "", changes: true }]);
  });

  it("is that the answer is settled once a permanent name is there", async () => {
    const link = (disk: SimDisk): Promise<void> => disk.link("/a", "/b");
    const { bench, m1 } = await begun(link, () => true);
    expect(m1.call.isSettled?.()).toBe(false);
    await make(bench.disk("m2"), "/b");
    expect(m1.call.isSettled?.()).toBe(true);
    const other = await begun(link);
    await make(other.bench.disk("m2"), "/b");
    expect(other.m1.call.isSettled?.()).toBe(false);
  });

  it("is a mistake of the scenario when a permanent name is removed, moved or replaced", async () => {
    const bench = new Bench();
    const m1 = bench.disk("m1", { isPermanent: (path) => path.startsWith("/p") });
    await m1.mkdir("/p");
    await make(m1, "/p1");
    await make(m1, "/a");
    const mistakes = [m1.unlink("/p1"), m1.rename("/p1", "/b"), m1.rename("/a", "/p1"), m1.rmdir("/p")];
    for (const mistake of mistakes) await expect(mistake).rejects.toThrow("permanent");
    await m1.rename("/a", "/p2");
    expect(bench.state).toBe("p/ p1= p2=");
  });
});
