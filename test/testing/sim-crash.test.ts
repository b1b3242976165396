import { describe, expect, it } from "vitest";
import type { CrashProfile } from "../../src/testing/sim/persistence.ts";
import type { SimDisk } from "../../src/testing/sim/disk.ts";
import { Bench, bytesOf } from "./sim-bench.ts";

interface Workload {
  readonly name: string;
  /** Durable before it begins. */
  readonly before?: (disk: SimDisk) => Promise<void>;
  readonly run: (disk: SimDisk) => Promise<void>;
  /** Written by hand: exactly what a power cut may leave afterwards. */
  readonly leaves: Readonly<Record<Exclude<CrashProfile, "journal">, readonly string[]>> & {
    /** Where it differs from weak: only renames are whole. */
    readonly journal?: readonly string[];
  };
}

/** The same for all profiles. */
const always = (...states: string[]): Workload["leaves"] => ({ "ext4-ordered": states, weak: states, share: states });

const write = (disk: SimDisk, path: string, text: string, sync = false): Promise<void> =>
  disk.createFile(path, bytesOf(text), { sync });

async function overwrite(disk: SimDisk, path: string, text: string, { sync = false, offset = 0 } = {}): Promise<void> {
  const file = await disk.open(path, "write");
  await file.write(offset, bytesOf(text));
  if (sync) await file.sync();
  await file.close();
}

const workloads: Workload[] = [
  {
    name: "a file that was made, and nothing synced",
    run: (disk) => write(disk, "/a", "full"),
    leaves: {
      "ext4-ordered": ["(nothing)", "a=", "a=fu", "a=__ll", "a=____", "a=full"],
      weak: ["(nothing)", "a=", "a=fu", "a=__ll", "a=____", "a=full"],
      share: ["a=", "a=fu", "a=__ll", "a=____", "a=full"],
    },
  },
  {
    name: "a file whose content was synced",
    run: (disk) => write(disk, "/a", "full", true),
    leaves: { "ext4-ordered": ["a=full"], weak: ["(nothing)", "a=full"], share: ["a=full"] },
  },
  {
    name: "the very bytes that are on the disk, written again",
    before: (disk) => write(disk, "/a", "full"),
    run: (disk) => overwrite(disk, "/a", "full"),
    leaves: always("a=full"),
  },
  {
    name: "a file whose content was synced, and its directory",
    run: async (disk) => {
      await write(disk, "/a", "full", true);
      await disk.syncDirectory("/");
    },
    leaves: always("a=full"),
  },
  {
    name: "a file whose directory was synced, but not its content",
    run: async (disk) => {
      await write(disk, "/a", "full");
      await disk.syncDirectory("/");
    },
    leaves: always("a=", "a=fu", "a=__ll", "a=____", "a=full"),
  },
  {
    name: "a file without content",
    run: (disk) => write(disk, "/a", ""),
    leaves: { "ext4-ordered": ["(nothing)", "a="], weak: ["(nothing)", "a="], share: ["a="] },
  },
  {
    name: "two names, of which the second was made later",
    run: async (disk) => {
      await write(disk, "/a", "");
      await write(disk, "/b", "");
    },
    leaves: {
      "ext4-ordered": ["(nothing)", "a=", "a= b="],
      weak: ["(nothing)", "a=", "b=", "a= b="],
      share: ["a= b="],
    },
  },
  {
    name: "two names, after a sync of the second file",
    run: async (disk) => {
      await write(disk, "/a", "");
      await write(disk, "/b", "", true);
    },
    leaves: {
      "ext4-ordered": ["a= b="],
      weak: ["(nothing)", "a=", "b=", "a= b="],
      share: ["a= b="],
    },
  },
  {
    name: "two names, after a sync of another directory",
    before: (disk) => disk.mkdir("/d"),
    run: async (disk) => {
      await write(disk, "/a", "");
      await write(disk, "/d/b", "");
      await disk.syncDirectory("/d");
    },
    leaves: {
      "ext4-ordered": ["a= d/ d/b="],
      weak: ["d/ d/b=", "a= d/ d/b="],
      share: ["a= d/ d/b="],
    },
  },
  {
    name: "a synced file in a new directory",
    run: async (disk) => {
      await disk.mkdir("/d");
      await write(disk, "/d/a", "full", true);
    },
    leaves: {
      "ext4-ordered": ["d/ d/a=full"],
      weak: ["(nothing)", "d/", "d/ d/a=full"],
      share: ["d/ d/a=full"],
    },
  },
  {
    name: "a synced file in a new directory that was synced",
    run: async (disk) => {
      await disk.mkdir("/d");
      await write(disk, "/d/a", "full", true);
      await disk.syncDirectory("/d");
    },
    leaves: {
      "ext4-ordered": ["d/ d/a=full"],
      weak: ["(nothing)", "d/ d/a=full"],
      share: ["d/ d/a=full"],
    },
  },
  {
    name: "a synced file in a new directory, both of which were synced, and the directory above",
    run: async (disk) => {
      await disk.mkdir("/d");
      await write(disk, "/d/a", "full", true);
      await disk.syncDirectory("/d");
      await disk.syncDirectory("/");
    },
    leaves: always("d/ d/a=full"),
  },
  {
    name: "a name that was removed",
    before: (disk) => write(disk, "/a", "old"),
    run: (disk) => disk.unlink("/a"),
    leaves: { "ext4-ordered": ["(nothing)", "a=old"], weak: ["(nothing)", "a=old"], share: ["(nothing)"] },
  },
  {
    name: "a name that was removed, and its directory synced",
    before: (disk) => write(disk, "/a", "old"),
    run: async (disk) => {
      await disk.unlink("/a");
      await disk.syncDirectory("/");
    },
    leaves: always("(nothing)"),
  },
  {
    name: "a directory that was removed",
    before: (disk) => disk.mkdir("/d"),
    run: (disk) => disk.rmdir("/d"),
    leaves: { "ext4-ordered": ["(nothing)", "d/"], weak: ["(nothing)", "d/"], share: ["(nothing)"] },
  },
  {
    name: "a temp file that came and went",
    run: async (disk) => {
      await write(disk, "/t", "");
      await disk.unlink("/t");
    },
    leaves: { "ext4-ordered": ["(nothing)", "t="], weak: ["(nothing)", "t="], share: ["(nothing)"] },
  },
  {
    name: "a second name",
    before: (disk) => write(disk, "/a", "x"),
    run: (disk) => disk.link("/a", "/b"),
    leaves: { "ext4-ordered": ["a=x", "a=x b=x"], weak: ["a=x", "a=x b=x"], share: ["a=x b=x"] },
  },
  {
    name: "a name that was published by link from a synced temp file",
    run: async (disk) => {
      await write(disk, "/t", "x", true);
      await disk.link("/t", "/a");
      await disk.unlink("/t");
    },
    leaves: {
      "ext4-ordered": ["t=x", "a=x t=x", "a=x"],
      weak: ["(nothing)", "t=x", "a=x t=x", "a=x"],
      share: ["a=x"],
    },
  },
  {
    name: "a rename",
    before: (disk) => write(disk, "/a", "x"),
    run: (disk) => disk.rename("/a", "/b"),
    leaves: {
      journal: ["a=x", "b=x"],
      "ext4-ordered": ["a=x", "b=x"],
      weak: ["(nothing)", "a=x", "a=x b=x", "b=x"],
      share: ["b=x"],
    },
  },
  {
    name: "a rename over another file",
    before: async (disk) => {
      await write(disk, "/a", "new");
      await write(disk, "/b", "old");
    },
    run: (disk) => disk.rename("/a", "/b"),
    leaves: {
      journal: ["a=new b=old", "b=new"],
      "ext4-ordered": ["a=new b=old", "b=new"],
      weak: ["a=new b=old", "a=new b=new", "b=old", "b=new"],
      share: ["b=new"],
    },
  },
  {
    name: "a rename over another file of content that was not synced",
    before: (disk) => write(disk, "/b", "old"),
    run: async (disk) => {
      await write(disk, "/t", "nw");
      await disk.rename("/t", "/b");
      await disk.syncDirectory("/");
    },
    leaves: always("b=", "b=n", "b=_w", "b=__", "b=nw"),
  },
  {
    name: "a rename into another directory, of which only the new one was synced",
    before: async (disk) => {
      await disk.mkdir("/d");
      await disk.mkdir("/e");
      await write(disk, "/d/a", "x");
    },
    run: async (disk) => {
      await disk.rename("/d/a", "/e/a");
      await disk.syncDirectory("/e");
    },
    leaves: {
      journal: ["d/ e/ e/a=x"],
      "ext4-ordered": ["d/ e/ e/a=x"],
      weak: ["d/ d/a=x e/ e/a=x", "d/ e/ e/a=x"],
      share: ["d/ e/ e/a=x"],
    },
  },
  {
    name: "a rename into another directory, of which only the old one was synced",
    before: async (disk) => {
      await disk.mkdir("/d");
      await disk.mkdir("/e");
      await write(disk, "/d/a", "x");
    },
    run: async (disk) => {
      await disk.rename("/d/a", "/e/a");
      await disk.syncDirectory("/d");
    },
    leaves: {
      journal: ["d/ e/ e/a=x"],
      "ext4-ordered": ["d/ e/ e/a=x"],
      weak: ["d/ e/", "d/ e/ e/a=x"],
      share: ["d/ e/ e/a=x"],
    },
  },
  {
    name: "a rename of a directory",
    before: async (disk) => {
      await disk.mkdir("/d");
      await write(disk, "/d/a", "x");
    },
    run: (disk) => disk.rename("/d", "/e"),
    leaves: {
      journal: ["d/ d/a=x", "e/ e/a=x"],
      "ext4-ordered": ["d/ d/a=x", "e/ e/a=x"],
      weak: ["(nothing)", "d/ d/a=x", "d/ d/a=x e/ e/a=x", "e/ e/a=x"],
      share: ["e/ e/a=x"],
    },
  },
  {
    name: "a name that was given to three files in turn",
    before: (disk) => write(disk, "/a", "1"),
    run: async (disk) => {
      await disk.unlink("/a");
      await write(disk, "/a", "2", true);
      await disk.syncDirectory("/");
      await disk.unlink("/a");
    },
    leaves: { "ext4-ordered": ["(nothing)", "a=2"], weak: ["(nothing)", "a=2"], share: ["(nothing)"] },
  },
  {
    name: "content that was written over",
    before: (disk) => write(disk, "/a", "old!"),
    run: (disk) => overwrite(disk, "/a", "NEW?"),
    leaves: always("a=old!", "a=NEd!", "a=olW?", "a=____", "a=NEW?"),
  },
  {
    name: "content that was written over and synced",
    before: (disk) => write(disk, "/a", "old!"),
    run: (disk) => overwrite(disk, "/a", "NEW?", { sync: true }),
    leaves: always("a=NEW?"),
  },
  {
    name: "content of two writes",
    before: (disk) => write(disk, "/a", ""),
    run: async (disk) => {
      await overwrite(disk, "/a", "12");
      await overwrite(disk, "/a", "34", { offset: 2 });
    },
    leaves: always(
      ...["a=", "a=12", "a=1234", "a=__", "a=____", "a=12__", "a=__34"],
      // One of them is torn, whatever became of the other.
      ...["a=1", "a=_2", "a=1_34", "a=_234", "a=123", "a=12_4", "a=__3", "a=___4"],
    ),
  },
  {
    name: "content of two writes, of which the first was synced",
    before: (disk) => write(disk, "/a", ""),
    run: async (disk) => {
      await overwrite(disk, "/a", "12", { sync: true });
      await overwrite(disk, "/a", "34", { offset: 2 });
    },
    leaves: always("a=12", "a=123", "a=12_4", "a=1234", "a=12__"),
  },
  {
    name: "two files, each with content that was not synced",
    before: async (disk) => {
      await write(disk, "/a", "");
      await write(disk, "/b", "");
    },
    run: async (disk) => {
      await overwrite(disk, "/a", "1");
      await overwrite(disk, "/b", "2");
    },
    leaves: always(...["a=", "a=1", "a=_"].flatMap((a) => ["b=", "b=2", "b=_"].map((b) => `${a} ${b}`))),
  },
];

describe.each(["ext4-ordered", "journal", "weak", "share"] as const)("a power cut under %s leaves of", (profile) => {
  it.each(workloads)("$name: exactly what is promised", async ({ before, run, leaves }) => {
    const bench = new Bench({}, profile);
    const disk = bench.disk("m1");
    await before?.(disk);
    bench.server.settle();
    const durable = bench.state;
    expect(bench.crashStates).toEqual([durable]);
    await run(disk);
    expect(bench.crashStates).toEqual([...(leaves[profile] ?? leaves.weak)].sort());
  });
});

describe("a sync that failed", () => {
  /** `/a` is there, what was written to it was to be synced, and the sync failed. */
  async function failed(): Promise<{ bench: Bench; disk: SimDisk }> {
    const bench = new Bench();
    const disk = bench.disk("m1");
    await write(disk, "/a", "");
    bench.server.settle();
    const failing = bench.decided("m1", { errors: { errnos: ["EIO"], operations: ["sync"] } });
    const begun = await failing.begin(async (other) => {
      const file = await other.open("/a", "write");
      await file.write(0, bytesOf("full"));
      await file.sync();
    });
    await failing.take();
    await failing.take();
    await failing.take("EIO");
    expect(begun.answer).toBe("EIO");
    return { bench, disk };
  }
  const unsynced = ["a=", "a=____", "a=__ll", "a=fu", "a=full"];

  it("leaves content that may or may not be there", async () => {
    expect((await failed()).bench.crashStates).toEqual(unsynced);
  });

  it("is not made good by a second one, though that says it went well", async () => {
    const { bench, disk } = await failed();
    const file = await disk.open("/a", "write");
    await file.sync();
    expect(bench.state).toBe("a=full");
    expect(bench.crashStates).toEqual(unsynced);
  });

  it("spoils nothing that is written and synced after it, and makes nothing durable that came before", async () => {
    const { bench, disk } = await failed();
    await overwrite(disk, "/a", "more", { offset: 4, sync: true });
    expect(bench.crashStates).toEqual(["a=____more", "a=__llmore", "a=fu__more", "a=fullmore"]);
  });

  it("is made good by writing everything again", async () => {
    const { bench, disk } = await failed();
    await overwrite(disk, "/a", "full", { sync: true });
    expect(bench.crashStates).toEqual(["a=full"]);
  });

  it("leaves names as they were", async () => {
    const bench = new Bench({}, "ext4-ordered");
    const failing = bench.decided("m1", { errors: { errnos: ["EIO"], operations: ["sync"] } });
    const begun = await failing.begin((disk) => write(disk, "/a", "12", true));
    await failing.take();
    await failing.take();
    await failing.take("EIO");
    expect(begun.answer).toBe("EIO");
    expect(bench.crashStates).toEqual(["(nothing)", "a=", "a=1", "a=12", "a=_2", "a=__"]);
  });
});

describe("a crash image", () => {
  it("is a world of its own, in which everything is durable", async () => {
    const bench = new Bench({}, "weak");
    const disk = bench.disk("m1");
    await write(disk, "/a", "x", true);
    await disk.link("/a", "/b");
    await disk.syncDirectory("/");
    const image = bench.server.crashImage(0);
    expect(image.crashImageCount()).toBe(1);
    expect(image.fingerprint(true)).toBe(bench.server.fingerprint(true));
    image.unlink(image.entry("/a", "unlink"));
    expect(bench.state).toBe("a=x b=x");
  });

  it("has no open files", async () => {
    const bench = new Bench({ busyWhileOpen: true });
    await bench.disk("m1").open("/a", "create");
    expect(bench.server.handles.size).toBe(1);
    expect(bench.server.crashImage(0).handles.size).toBe(0);
  });

  it("keeps that two names are one file", async () => {
    const bench = new Bench();
    const disk = bench.disk("m1");
    await write(disk, "/a", "x");
    await disk.link("/a", "/b");
    bench.server.settle();
    const image = bench.server.crashImage(0);
    expect(image.find("/a")).toBe(image.find("/b"));
    expect(image.find("/a")).toMatchObject({ links: 2 });
  });

  it("can be made of halves of renames that leave a directory inside itself", async () => {
    const bench = new Bench({}, "weak");
    const disk = bench.disk("m1");
    for (const path of ["/a", "/b"]) await disk.mkdir(path);
    bench.server.settle();
    await disk.rename("/b", "/a/b");
    await disk.rename("/a/b", "/b");
    await disk.rename("/a", "/b/a");
    expect(bench.crashStates).toContain("a/ a/b/ b/ b/a/");
    expect(bench.crashStates).toContain("b/ b/a/");
  });

  it("has nothing of a buffer that the caller used again", async () => {
    const bench = new Bench();
    const bytes = bytesOf("full");
    await bench.disk("m1").createFile("/a", bytes, { sync: false });
    bytes.fill(120);
    expect(bench.crashStates).toEqual(["a=", "a=____", "a=__ll", "a=fu", "a=full"]);
  });
});

describe("the fingerprint of a state", () => {
  /** Of a disk after `run`, with and without what a power cut could lose. */
  async function printsOf(run: (disk: SimDisk, bench: Bench) => Promise<void>): Promise<[string, string]> {
    const bench = new Bench({}, "weak");
    await run(bench.disk("m1"), bench);
    return [bench.server.fingerprint(false), bench.server.fingerprint(true)];
  }

  it("is the same whichever way led there", async () => {
    const one = await printsOf(async (disk) => {
      await write(disk, "/a", "x", true);
      await write(disk, "/b", "y", true);
      await disk.syncDirectory("/");
    });
    const other = await printsOf(async (disk) => {
      await write(disk, "/b", "y");
      await write(disk, "/t", "x");
      await disk.rename("/t", "/a");
      await overwrite(disk, "/a", "x", { sync: true });
      await overwrite(disk, "/b", "y", { sync: true });
      await disk.syncDirectory("/");
    });
    expect(other).toEqual(one);
  });

  it("tells two files of one content apart as soon as a process was told which is which", async () => {
    const prints = (order: readonly string[], look: boolean) =>
      printsOf(async (disk) => {
        for (const path of order) await write(disk, path, "same");
        if (look) for (const path of order) await disk.stat(path);
      });
    const [there, back] = [
      ["/a", "/b"],
      ["/b", "/a"],
    ];
    expect((await prints(there, false))[0]).toBe((await prints(back, false))[0]);
    expect((await prints(there, true))[0]).not.toBe((await prints(back, true))[0]);
  });

  it("tells apart in which order one process has opened its files", async () => {
    const prints = (order: readonly string[]) =>
      printsOf(async (disk) => {
        await write(disk, "/a", "same");
        await write(disk, "/b", "other");
        for (const path of order) await disk.open(path, "read");
      });
    expect(await prints(["/a", "/b"])).not.toEqual(await prints(["/b", "/a"]));
  });

  it("tells contents apart that a power cut would bring back", async () => {
    const prints = (text: string) =>
      printsOf(async (disk, { server }) => {
        await write(disk, "/a", text);
        server.settle();
        await overwrite(disk, "/a", "new");
      });
    const [one, other] = [await prints("abc"), await prints("xyz")];
    expect(one[0]).toBe(other[0]);
    expect(one[1]).not.toBe(other[1]);
  });

  it("tells files apart that a power cut would bring back under a removed name", async () => {
    const prints = (text: string) =>
      printsOf(async (disk, { server }) => {
        await write(disk, "/a", text);
        server.settle();
        await disk.unlink("/a");
      });
    const [one, other] = [await prints("abc"), await prints("xyz")];
    expect(one[0]).toBe(other[0]);
    expect(one[1]).not.toBe(other[1]);
  });

  it("tells one file with two names from two files of the same content", async () => {
    const linked = await printsOf(async (disk) => {
      await write(disk, "/a", "x");
      await disk.link("/a", "/b");
    });
    const copied = await printsOf(async (disk) => {
      await write(disk, "/a", "x");
      await write(disk, "/b", "x");
    });
    expect(linked[0]).not.toBe(copied[0]);
  });
});
