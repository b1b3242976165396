import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Chain, openGate, openGround, putIfAbsent, replace, type Ground } from "../../src/durable/index.ts";
import { slotName } from "../../src/format/name.ts";
import { encodeRecord } from "../../src/format/record.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { add, openList } from "./listed-ids.ts";
import { asNewerFormat } from "./newer-format.ts";
import { noteKind } from "../sites/disks.ts";
import { fill, fillNames, mountSmallDisk } from "./small-disk.ts";

const containing = (text: string): string => expect.stringContaining(text) as string;

async function open(directory: string | URL): Promise<Ground> {
  const ground = await openGround(directory);
  onTestFinished(() => ground.close());
  return ground;
}

/** Every path below with its content; heartbeats aside, which change by themselves. */
function contentOf(directory: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const path = join(directory, name);
    if (!name.endsWith(".beat")) found[name] = statSync(path).isFile() ? readFileSync(path, "latin1") : "(directory)";
  }
  return found;
}

describe("a location", () => {
  it.each([
    ["empty", ""],
    ["a NUL", "/tmp/a\0b"],
    ["a URL of the web", new URL("http://server/share")],
    ["a URL of another machine", "file://server/share"],
    ["a URL that hides a slash", new URL("file:///tmp/a%2Fb")],
    ["a URL that hides a NUL", "file:///tmp/a%00b"],
  ])("is refused as INVALID_PATH when it is %s", async (_, location) => {
    await expect(openGround(location)).rejects.toMatchObject({
      code: "INVALID_PATH",
      action: "fix-caller",
      message: containing("The location"),
    });
  });

  it.each([
    ["a name", "x".repeat(300)],
    ["a path", "x/".repeat(3000)],
  ])("is refused as INVALID_PATH when %s in it is too long for the file system", async (_, name) => {
    const directory = makeScratch();
    await expect(openGround(join(directory, name))).rejects.toMatchObject({
      code: "INVALID_PATH",
      errno: "ENAMETOOLONG",
    });
    expect(readdirSync(directory)).toEqual([]);
  });

  it("of a gate is checked like that of a ground", async () => {
    const ground = await open(makeScratch());
    for (const location of ["", "a\0b"])
      await expect(openGate(ground, location)).rejects.toMatchObject({ code: "INVALID_PATH" });
  });

  it("behind a symbolic link that leads nowhere is refused by the name of the link, and nothing hangs", async () => {
    const root = makeScratch();
    symlinkSync(join(root, "unmounted"), join(root, "share"));
    for (const location of [join(root, "share"), join(root, "share", "ground")])
      await expect(openGround(location)).rejects.toMatchObject({
        code: "IO_ERROR",
        errno: "ENOENT",
        path: join(root, "share"),
      });
    expect(readdirSync(root)).toEqual(["share"]);
  });

  it("behind links in a circle is refused", async () => {
    const root = makeScratch();
    symlinkSync(join(root, "b"), join(root, "a"));
    symlinkSync(join(root, "a"), join(root, "b"));
    await expect(openGround(join(root, "a"))).rejects.toMatchObject({ code: "INVALID_PATH", errno: "ELOOP" });
  });
});

describe("a file where a directory should be", () => {
  it.each([
    ["the ground", ""],
    ["a directory above the ground", "/below"],
  ])("is named when it is in the place of %s, and is left as it is", async (_, below) => {
    const file = join(makeScratch(), "file");
    writeFileSync(file, "foreign");
    await expect(openGround(file + below)).rejects.toMatchObject({
      code: "IO_ERROR",
      errno: "ENOTDIR",
      path: containing(file),
      message: containing("a file is where a directory should be: move it away"),
    });
    expect(readFileSync(file, "utf8")).toBe("foreign");
  });

  it.each(["holders", "temp"])("is named when it is in the place of %s", async (name) => {
    const directory = makeScratch();
    writeFileSync(join(directory, name), "foreign");
    await expect(openGround(directory)).rejects.toMatchObject({
      code: "IO_ERROR",
      errno: "ENOTDIR",
      path: join(directory, name),
      message: containing("move it away"),
    });
    expect(readFileSync(join(directory, name), "utf8")).toBe("foreign");
    rmSync(join(directory, name));
    await open(directory);
  });

  it.each(["holders", "temp"])(
    "is named when it took the place of %s later, and no half of a session is left",
    async (name) => {
      const directory = makeScratch();
      await (await openGround(directory)).close();
      rmSync(join(directory, name), { recursive: true });
      writeFileSync(join(directory, name), "foreign");
      const before = contentOf(directory);
      await expect(openGround(directory)).rejects.toMatchObject({
        code: "IO_ERROR",
        errno: "ENOTDIR",
        path: containing(join(directory, name)),
      });
      expect(contentOf(directory)).toEqual(before);
    },
  );
});

describe("a record that is not what it should be", () => {
  interface Record {
    readonly path: string;
    /** Reads it, as the next process does. */
    readonly use: () => Promise<unknown>;
  }
  /** Each makes the record whole first. */
  const records: readonly [string, (directory: string) => Promise<Record>][] = [
    [
      "ground.json",
      async (directory) => {
        await (await openGround(directory)).close();
        return { path: join(directory, "ground.json"), use: async () => void (await open(directory)) };
      },
    ],
    [
      "gate.json",
      async (directory) => {
        const ground = await open(join(directory, "ground"));
        await (await openGate(ground, directory)).close();
        return { path: join(directory, "gate.json"), use: () => openGate(ground, directory) };
      },
    ],
    [
      "a slot of a chain",
      async (directory) => {
        const ground = await open(join(directory, "ground"));
        const chain = (): Chain<{ readonly text: string }> => new Chain(ground.staging, directory, noteKind);
        await chain().append("a", () => ({ text: "a" }));
        await chain().append("b", () => ({ text: "b" }));
        return { path: join(directory, slotName(2)), use: () => chain().append("c", () => ({ text: "c" })) };
      },
    ],
    [
      "the record of an epoch",
      async (directory) => {
        const ground = await open(join(directory, "ground"));
        const chain = join(directory, "chain");
        for (const id of ["a", "b", "c", "d"]) await add(await openList(ground.staging, chain), id);
        const use = async (): Promise<unknown> => await add(await openList(ground.staging, chain), "e");
        return { path: join(chain, "epochs", slotName(2)), use };
      },
    ],
    [
      "a slot of a rolling chain",
      async (directory) => {
        const ground = await open(join(directory, "ground"));
        const chain = join(directory, "chain");
        await add(await openList(ground.staging, chain), "a");
        const epoch = readdirSync(chain).find((name) => name.startsWith(slotName(1)))!;
        const use = async (): Promise<unknown> => await add(await openList(ground.staging, chain), "b");
        return { path: join(chain, epoch, slotName(1)), use };
      },
    ],
  ];
  const faults: readonly [string, string, (path: string, whole: Buffer) => void][] = [
    ["empty", "CORRUPT", (path) => writeFileSync(path, "")],
    ["torn", "CORRUPT", (path, whole) => writeFileSync(path, whole.subarray(0, whole.length / 2))],
    ["zeros", "CORRUPT", (path, whole) => writeFileSync(path, Buffer.alloc(whole.length))],
    ["longer than it was", "CORRUPT", (path, whole) => writeFileSync(path, Buffer.concat([whole, whole]))],
    [
      "altered by one letter",
      "CORRUPT",
      (path, whole) => writeFileSync(path, whole.toString().replace("body", "bodx")),
    ],
    ["another program's", "CORRUPT", (path) => writeFileSync(path, '{"version": 3}\n')],
    [
      "of another kind",
      "CORRUPT",
      (path) => writeFileSync(path, encodeRecord({ ...noteKind, kind: "letter" }, { text: "" })),
    ],
    ["five megabytes long", "CORRUPT", (path) => writeFileSync(path, Buffer.alloc(5 * 1024 * 1024))],
    ["of a newer format", "NEWER_FORMAT", (path, whole) => writeFileSync(path, asNewerFormat(whole))],
    [
      "a directory",
      "CORRUPT",
      (path) => {
        rmSync(path);
        mkdirSync(path);
      },
    ],
  ];

  describe.each(records)("%s", (_, make) => {
    it.each(faults)(
      "that is %s is refused by its name with a remedy, and nothing is written",
      async (__, code, spoil) => {
        const directory = makeScratch();
        const { path, use } = await make(directory);
        spoil(path, readFileSync(path));
        const before = contentOf(directory);
        await expect(use()).rejects.toMatchObject({
          code,
          path,
          message: expect.stringMatching(/move it away|backup|Upgrade/) as string,
          ...(code === "NEWER_FORMAT" ? { writtenBy: "9.9.9" } : {}),
        });
        expect(contentOf(directory)).toEqual(before);
      },
    );
  });

  it.each(faults.filter(([, code]) => code !== "NEWER_FORMAT"))(
    "and is that of a holder, %s: others sweep, judge the holder by its heartbeat, and name the record",
    async (_, __, spoil) => {
      const directory = makeScratch();
      const [ground, other] = [await open(directory), await openGround(directory)];
      // A directory in the place of its record cannot be removed by the holder.
      onTestFinished(() => other.close().catch(() => undefined));
      const { id } = (await other.session()).holder;
      const path = ground.layout.record(id);
      spoil(path, readFileSync(path));
      expect(await ground.sweep()).toEqual([]);
      expect(await ground.settle(id)).toBe(false);
      expect(await ground.holders()).toContainEqual(expect.objectContaining({ id, host: "", state: "alive" }));
      expect(await ground.damagedHolders()).toMatchObject([
        { id, path, what: expect.stringContaining(path) as string },
      ]);
      expect(readdirSync(join(directory, "temp"))).toContain(id);
    },
  );

  it("is a slot that was copied to another number, which is told by its content", async () => {
    const directory = makeScratch();
    const ground = await open(join(directory, "ground"));
    const chain = new Chain(ground.staging, directory, noteKind);
    for (const id of ["a", "b"]) await chain.append(id, () => ({ text: id }));
    cpSync(join(directory, slotName(1)), join(directory, slotName(3)));
    const fresh = new Chain(ground.staging, directory, noteKind);
    await expect(fresh.last()).rejects.toMatchObject({
      code: "CORRUPT",
      path: join(directory, slotName(3)),
      message: containing("number 1"),
    });
    await expect(chain.append("c", () => ({ text: "c" }))).rejects.toMatchObject({ code: "CORRUPT" });
  });
});

describe("a foreign file in Holdfast's directories", () => {
  it("is ignored by every operation there, and left as it is", async () => {
    const directory = makeScratch();
    const ground = await open(join(directory, "ground"));
    const chain = join(directory, "chain");
    await add(await openList(ground.staging, chain), "a");
    const plain = join(directory, "plain");
    mkdirSync(plain);
    const foreign: string[] = [];
    const below = (path: string): string[] => [
      path,
      ...readdirSync(path, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .flatMap(({ name }) => below(join(path, name))),
    ];
    const ours = below(directory);
    for (const path of ours) {
      for (const name of [
        "Thumbs.db",
        ".DS_Store",
        "desktop.ini",
        "notes.json",
        "notes.beat",
        "notes.dead",
        "~lock#",
      ]) {
        writeFileSync(join(path, name), "foreign");
        foreign.push(join(path, name));
      }
      mkdirSync(join(path, "@eaDir"));
      foreign.push(join(path, "@eaDir"));
    }
    const other = await open(join(directory, "ground"));
    expect(await other.judgeHolders()).toHaveLength(2);
    expect(await other.holders()).toHaveLength(2);
    expect(await other.sweep()).toEqual([]);
    const list = await openList(other.staging, chain);
    for (const id of ["b", "c", "d"]) await add(list, id);
    expect(await list.read()).toMatchObject({ number: 4 });
    const gate = await openGate(other, plain);
    await (await gate.acquire()).release();
    await gate.close();
    expect(await new Chain(other.staging, plain, noteKind).append("a", () => ({ text: "a" }))).toMatchObject({
      number: 1,
    });
    expect(foreign.filter((path) => !existsSync(path))).toEqual([]);
  });
});

describe("a user who may not", () => {
  let directory: string;
  const refused = { code: "NO_PERMISSION", action: "fix-caller", message: containing("check owner and mode") };
  beforeEach(() => {
    directory = join(makeScratch(), "ground");
  });

  it("make the directory is told so by its name, and nothing is made", async () => {
    await asOrdinaryUser(async () => {
      await expect(openGround(join(directory, "deep"))).rejects.toMatchObject({ ...refused, path: directory });
    });
    expect(existsSync(directory)).toBe(false);
  });

  it.each(["holders", "temp"])("write into %s is told so by a name in it, and leaves nothing", async (name) => {
    await (await openGround(directory)).close();
    for (const each of ["holders", "temp"]) chmodSync(join(directory, each), each === name ? 0o755 : 0o777);
    const before = contentOf(directory);
    await asOrdinaryUser(async () => {
      await expect(openGround(directory)).rejects.toMatchObject({
        ...refused,
        path: containing(join(directory, name)),
      });
    });
    expect(contentOf(directory)).toEqual(before);
  });

  it("read the record of the ground is told so by its name", async () => {
    await (await openGround(directory)).close();
    chmodSync(join(directory, "ground.json"), 0o600);
    await asOrdinaryUser(async () => {
      await expect(openGround(directory)).rejects.toMatchObject({ ...refused, path: join(directory, "ground.json") });
    });
  });

  it("enter the directory is told so", async () => {
    await (await openGround(directory)).close();
    chmodSync(directory, 0o700);
    await asOrdinaryUser(async () => {
      await expect(openGround(directory)).rejects.toMatchObject(refused);
    });
  });

  it("read an entry of a chain is told so by its name, and adds nothing", async () => {
    const ground = await open(directory);
    chmodSync(join(directory, "temp"), 0o777);
    chmodSync(join(directory, "holders"), 0o777);
    const chain = join(directory, "chain");
    mkdirSync(chain);
    chmodSync(chain, 0o777);
    await new Chain(ground.staging, chain, noteKind).append("a", () => ({ text: "a" }));
    chmodSync(join(chain, slotName(1)), 0o600);
    await asOrdinaryUser(async () => {
      const other = await openGround(directory);
      const appended = new Chain(other.staging, chain, noteKind).append("b", () => ({ text: "b" }));
      await expect(appended).rejects.toMatchObject({ ...refused, path: join(chain, slotName(1)) });
      await other.close();
    });
    expect(readdirSync(chain)).toEqual([slotName(1)]);
  });

  it("write, because the file system is read-only, is told that", async (context) => {
    const mount = mountSmallDisk(context, "size=256k");
    const ground = await openGround(join(mount, "ground"));
    await ground.close();
    execFileSync("mount", ["-o", "remount,ro", mount]);
    for (const name of ["ground", "other"])
      await expect(openGround(join(mount, name))).rejects.toMatchObject({
        code: "NO_PERMISSION",
        errno: "EROFS",
        message: containing("mounted read-only"),
      });
  });
});

describe("a full disk", () => {
  const full = { code: "DISK_FULL", action: "fix-data", message: containing("make room") };

  it("refuses a new ground and leaves no half one, and takes it when there is room", async (context) => {
    const disk = mountSmallDisk(context, "size=64k");
    const makeRoom = fill(disk);
    const directory = join(disk, "ground");
    for (let attempt = 0; attempt < 3; attempt++) {
      await expect(openGround(directory)).rejects.toMatchObject(full);
      expect(Object.values(contentOf(directory)).filter((content) => content !== "(directory)")).toEqual([]);
      expect(readdirSync(join(directory, "temp"))).toEqual([]);
    }
    makeRoom();
    await (await openGround(directory)).close();
  });

  it("loses nothing that was there and leaves nothing half-written, and goes on when there is room", async (context) => {
    const disk = mountSmallDisk(context, "size=128k");
    const ground = await openGround(join(disk, "ground"));
    const target = join(disk, "name");
    const chain = new Chain(ground.staging, join(disk, "ground"), noteKind);
    const list = await openList(ground.staging, join(disk, "list"));
    await replace(ground.staging, target, Buffer.from("old"));
    await chain.append("a", () => ({ text: "a" }));
    for (const id of ["a", "b"]) await add(list, id);
    const makeRoom = fill(disk);
    const before = contentOf(disk);
    const actions = [
      () => putIfAbsent(ground.staging, join(disk, "new"), Buffer.alloc(10_000, "x")),
      () => replace(ground.staging, target, Buffer.alloc(10_000, "x")),
      () => chain.append("b", () => ({ text: "b" })),
      () => add(list, "c"),
    ];
    for (const action of [...actions, ...actions]) await expect(action()).rejects.toMatchObject(full);
    expect(contentOf(disk)).toEqual(before);
    makeRoom();
    await replace(ground.staging, target, Buffer.from("new"));
    expect(readFileSync(target, "utf8")).toBe("new");
    expect(await chain.append("b", () => ({ text: "b" }))).toMatchObject({ number: 2 });
    expect(await add(list, "c")).toBe(3);
    // Over a roll.
    expect(await add(list, "d")).toBe(4);
    expect((await ground.session()).isOver).toBe(false);
    await ground.close();
  });

  it("without room for another name is told apart from nothing, and leaves nothing", async (context) => {
    const disk = mountSmallDisk(context, "size=1m,nr_inodes=32");
    const directory = join(disk, "ground");
    await (await openGround(directory)).close();
    const makeRoom = fillNames(disk);
    await expect(openGround(directory)).rejects.toMatchObject(full);
    expect(readdirSync(join(directory, "temp"))).toEqual([]);
    expect(readdirSync(join(directory, "holders"))).toEqual([]);
    makeRoom();
    await (await openGround(directory)).close();
  });
});
