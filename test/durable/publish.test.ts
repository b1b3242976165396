import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path/posix";
import { beforeEach, describe, expect, it } from "vitest";
import { canLinkFrom, putIfAbsent, replace } from "../../src/durable/publish/publish.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { makeScratch } from "../sites/scratch.ts";
import { startChild } from "./child.ts";
import { changedDisk, places, readText, withDisk, type Place } from "../sites/disks.ts";
import { nfs, World } from "../sites/world.ts";

const bytesOf = (text: string): Uint8Array => Buffer.from(text);

describe.each(places)("publish on %s", (_, make) => {
  let place: Place;
  let target: string;
  beforeEach(async () => {
    place = await make();
    target = `${place.directory}/name`;
  });
  const content = (): Promise<string> => readText(place.staging.disk, target);
  const temps = (): Promise<string[]> => place.staging.disk.list(place.temp);

  describe("put if absent", () => {
    it("makes a file that is not there, whole, and leaves no temp file", async () => {
      expect(await putIfAbsent(place.staging, target, bytesOf("first"))).toBe(true);
      expect(await content()).toBe("first");
      expect(await temps()).toEqual([]);
    });

    it("says false to the second one, keeps the first, and leaves no temp file", async () => {
      await putIfAbsent(place.staging, target, bytesOf("first"));
      expect(await putIfAbsent(place.staging, target, bytesOf("other"))).toBe(false);
      expect(await putIfAbsent(place.staging, target, bytesOf("longer than the first"))).toBe(false);
      expect(await putIfAbsent(place.staging, target, bytesOf(""))).toBe(false);
      expect(await content()).toBe("first");
      expect(await temps()).toEqual([]);
    });

    it("says true again to the same bytes: a caller that lost the answer may ask again", async () => {
      expect(await putIfAbsent(place.staging, target, bytesOf("first"))).toBe(true);
      expect(await putIfAbsent(place.staging, target, bytesOf("first"))).toBe(true);
      expect(await temps()).toEqual([]);
    });

    it("has one winner among many at once", async () => {
      const texts = Array.from({ length: 20 }, (__, index) => `caller ${index}`);
      const won = await Promise.all(texts.map((text) => putIfAbsent(place.staging, target, bytesOf(text))));
      expect(won.filter(Boolean)).toHaveLength(1);
      expect(await content()).toBe(texts[won.indexOf(true)]);
      expect(await temps()).toEqual([]);
    });

    it("takes a directory under that name for another's", async () => {
      await place.staging.disk.mkdir(target);
      expect(await putIfAbsent(place.staging, target, bytesOf("first"))).toBe(false);
      expect(await temps()).toEqual([]);
    });

    it("works without syncs where nothing need survive a power cut", async () => {
      expect(await putIfAbsent(place.staging, target, bytesOf("first"), { sync: false })).toBe(true);
      expect(await content()).toBe("first");
    });

    it("carries a megabyte as well as nothing", async () => {
      const large = Buffer.alloc(1_000_000, "x");
      expect(await putIfAbsent(place.staging, target, large)).toBe(true);
      expect((await content()).length).toBe(large.length);
      expect(await putIfAbsent(place.staging, `${target}-2`, bytesOf(""))).toBe(true);
      expect(await readText(place.staging.disk, `${target}-2`)).toBe("");
    });
  });

  describe("replace", () => {
    it("makes the file, and replaces it, whole, and leaves no temp file", async () => {
      await replace(place.staging, target, bytesOf("first"));
      expect(await content()).toBe("first");
      await replace(place.staging, target, bytesOf("second"), { sync: false });
      expect(await content()).toBe("second");
      expect(await temps()).toEqual([]);
    });

    it("leaves the content of one of many at once", async () => {
      const texts = Array.from({ length: 20 }, (__, index) => `caller ${index}`);
      await Promise.all(texts.map((text) => replace(place.staging, target, bytesOf(text))));
      expect(texts).toContain(await content());
      expect(await temps()).toEqual([]);
    });

    it("never replaces a directory", async () => {
      await place.staging.disk.mkdir(target);
      await expect(replace(place.staging, target, bytesOf("first"))).rejects.toMatchObject({
        code: "IO_ERROR",
        path: expect.stringContaining(target) as string,
      });
      expect((await place.staging.disk.stat(target)).kind).toBe("directory");
      expect(await temps()).toEqual([]);
    });
  });

  it.each([
    ["put if absent", putIfAbsent],
    ["replace", replace],
  ])("%s into a directory that is not there fails by its name, and leaves no temp file", async (__, publish) => {
    await expect(publish(place.staging, `${place.directory}/missing/name`, bytesOf("x"))).rejects.toMatchObject({
      code: "IO_ERROR",
      errno: "ENOENT",
      path: expect.stringContaining("missing/name") as string,
    });
    expect(await temps()).toEqual([]);
  });
});

describe("readers of a file that another process replaces all the time", () => {
  it("see every time one whole content", async () => {
    const directory = makeScratch();
    const target = join(directory, "name");
    writeFileSync(target, "0".repeat(50_000));
    const writer = startChild(
      `
      const ground = await durable.openGround(args[0] + "/ground");
      let isOver = false;
      told.next().then(() => (isOver = true));
      for (let round = 1; !isOver; round++) {
        const content = Buffer.alloc(50_000 + round, String(round % 10));
        await durable.replace(ground.staging, args[0] + "/name", content, { sync: false });
        await new Promise((resolve) => setImmediate(resolve));
      }
      await ground.close();
      say("done");
      process.stdin.destroy();`,
      directory,
    );
    const seen = new Set<number>();
    const torn: string[] = [];
    while (seen.size < 50) {
      const content = readFileSync(target, "utf8");
      seen.add(content.length);
      if (content !== content.charAt(0).repeat(content.length) || content.length < 50_000) torn.push(content);
      // A child that fails must end the test.
      if (writer.process.exitCode !== null) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    writer.tell("enough");
    expect(await writer.hear()).toBe("done");
    expect(torn).toEqual([]);
  });
});

describe("publish on a file system that lacks something", () => {
  it("without hard links is refused as UNSUPPORTED_DISK that says so, and leaves nothing", async () => {
    const world = new World({ quirks: { noHardLinks: true } });
    const staging = await world.staging("ada");
    await expect(putIfAbsent(staging, "/name", bytesOf("x"))).rejects.toMatchObject({
      code: "UNSUPPORTED_DISK",
      path: "/name",
      missing: ["hard links"],
    });
    expect(world.tree("/")).toEqual({ "//temp/": "" });
  });

  it("without a sync of directories is refused before anything is acknowledged", async () => {
    const world = new World({ quirks: { noDirectorySync: true } });
    const staging = await world.staging("ada");
    for (const publish of [putIfAbsent, replace])
      await expect(publish(staging, "/name", bytesOf("x"))).rejects.toMatchObject({
        code: "UNSUPPORTED_DISK",
        missing: ["directory sync"],
      });
  });

  it("replaces nothing where a rename cannot, and leaves no temp file", async () => {
    const world = new World({ quirks: { renameRefusesToReplace: true } });
    const staging = await world.staging("ada");
    await replace(staging, "/name", bytesOf("old"));
    await expect(replace(staging, "/name", bytesOf("new"))).rejects.toMatchObject({
      code: "IO_ERROR",
      errno: "EEXIST",
    });
    expect(world.tree("/")).toEqual({ "//temp/": "", "//name": "old" });
  });
});

describe("publish over a connection that loses answers", () => {
  it.each(["done, but the reply is lost", "done, and the repeated request fails"])(
    "knows its own file by its content: %s",
    async (label) => {
      for (const [what, publish] of [
        ["link", putIfAbsent],
        ["rename", replace],
      ] as const) {
        const world = new World({ volume: nfs });
        const staging = await world.staging("ada");
        const fault = { process: "ada", at: what, label, lasting: false };
        const isSpoiled = await world.withFault(fault, async () => {
          expect(await publish(staging, "/name", bytesOf("mine"))).toBe(what === "link" ? true : undefined);
        });
        expect(isSpoiled).toBe(true);
        expect(world.tree("/")).toEqual({ "//temp/": "", "//name": "mine" });
      }
    },
  );

  const putForGood: typeof putIfAbsent = (staging, target, bytes) =>
    putIfAbsent(staging, target, bytes, { isPermanent: true });

  it("asks again when the request itself was lost, for a name that no process removes", async () => {
    for (const [what, publish] of [
      ["link", putForGood],
      ["rename", replace],
    ] as const) {
      const world = new World({ volume: nfs });
      const staging = await world.staging("ada");
      const fault = { process: "ada", at: what, label: "EIO", lasting: false };
      const isSpoiled = await world.withFault(
        fault,
        async () => void (await publish(staging, "/name", bytesOf("mine"))),
      );
      expect(isSpoiled).toBe(true);
      expect(world.tree("/")).toEqual({ "//temp/": "", "//name": "mine" });
    }
  });

  it("never makes a name twice that another process may have removed already", async () => {
    const world = new World({ volume: nfs });
    const staging = await world.staging("ada");
    let links = 0;
    const taken = changedDisk(staging.disk, (disk) => ({
      async link(from, to) {
        await disk.link(from, to);
        if (++links > 1) return;
        await world.ports("bea").disk.unlink(to);
        throw diskError("EIO", "link", to);
      },
    }));
    await expect(putIfAbsent({ ...staging, disk: taken }, "/name", bytesOf("mine"))).rejects.toMatchObject({
      code: "OUTCOME_UNKNOWN",
    });
    expect(world.tree("/")).toEqual({ "//temp/": "" });
  });

  const [, makeMemory] = places[1]!;

  it("is OUTCOME_UNKNOWN when its outcome cannot be found out, and the same bytes may be put again", async () => {
    const place = await makeMemory();
    const target = `${place.directory}/name`;
    for (const errno of ["EIO", "EACCES", "EBUSY"]) {
      let isBroken = true;
      const broken = withDisk(place, (disk) => ({
        async link(from, to) {
          await disk.link(from, to).catch(() => undefined);
          if (isBroken) throw diskError("EIO", "link", to);
        },
        async readFile(path, bytesMax) {
          if (isBroken) throw diskError(errno, "read", path);
          return disk.readFile(path, bytesMax);
        },
      }));
      await expect(putIfAbsent(broken.staging, target, bytesOf("mine"))).rejects.toMatchObject({
        code: "OUTCOME_UNKNOWN",
        action: "retry",
        path: target,
      });
      isBroken = false;
      expect(await putIfAbsent(broken.staging, target, bytesOf("mine"))).toBe(true);
      expect(await place.staging.disk.list(place.temp)).toEqual([]);
    }
  });

  // A client repeats a request whose answer was lost, and the answer to the second one is "it is
  // there already": that it is ours only its content can tell.
  it.each(["EMFILE", "EACCES", "ENOMEM", "ESTALE", "EIO"])(
    "is OUTCOME_UNKNOWN when the name is taken, perhaps by ourselves, and a look fails with %s",
    async (errno) => {
      const world = new World({ volume: nfs });
      const staging = await world.staging("ada");
      const disk = changedDisk(staging.disk, (before) => ({
        async link(from, to) {
          await before.link(from, to);
          throw diskError("EEXIST", "link", to);
        },
        async readFile(path) {
          throw diskError(errno, "read", path);
        },
      }));
      for (const put of [putIfAbsent, putForGood])
        await expect(put({ ...staging, disk }, `/${put.name}`, bytesOf("mine"))).rejects.toMatchObject({
          code: "OUTCOME_UNKNOWN",
        });
    },
  );

  it("tells the failure of the look where a taken name is always another's: on a local disk", async () => {
    const world = new World();
    const staging = await world.staging("ada");
    await staging.disk.createFile("/name", bytesOf("another's"), { sync: true });
    const disk = changedDisk(staging.disk, () => ({
      async readFile(path) {
        throw diskError("EACCES", "read", path);
      },
    }));
    await expect(putIfAbsent({ ...staging, disk }, "/name", bytesOf("mine"))).rejects.toMatchObject({
      code: "NO_PERMISSION",
    });
  });

  it("is OUTCOME_UNKNOWN when a lost request is followed by a refusal, which says nothing about the first", async () => {
    const place = await makeMemory();
    for (const [operation, publish] of [
      ["link", putForGood],
      ["rename", replace],
    ] as const) {
      let tries = 0;
      const broken = withDisk(place, () => ({
        [operation]: async (_from: string, to: string) => {
          throw diskError(++tries === 1 ? "EIO" : "EACCES", operation, to);
        },
      }));
      await expect(publish(broken.staging, `${place.directory}/${operation}`, bytesOf("mine"))).rejects.toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
    }
  });

  it("gives up with OUTCOME_UNKNOWN after three requests without an answer", async () => {
    const place = await makeMemory();
    for (const [operation, publish] of [
      ["link", putForGood],
      ["rename", replace],
    ] as const) {
      let tries = 0;
      const broken = withDisk(place, () => ({
        [operation]: async (_from: string, to: string) => {
          tries++;
          throw diskError("ETIMEDOUT", operation, to);
        },
      }));
      await expect(publish(broken.staging, `${place.directory}/${operation}`, bytesOf("mine"))).rejects.toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      expect(tries).toBe(3);
      expect(await place.staging.disk.list(place.temp)).toEqual([]);
    }
  });

  it("says that a replacement is in doubt when the temp file is gone and the target is another's", async () => {
    const place = await makeMemory();
    const target = `${place.directory}/name`;
    const overtaken = withDisk(place, (disk) => ({
      async rename(from, to) {
        await disk.rename(from, to);
        await disk.unlink(to);
        await disk.createFile(to, bytesOf("another's"), { sync: true });
        throw diskError("ENOENT", "rename", to);
      },
    }));
    await expect(replace(overtaken.staging, target, bytesOf("mine"))).rejects.toMatchObject({
      code: "OUTCOME_UNKNOWN",
    });
    expect(await readText(place.staging.disk, target)).toBe("another's");
  });

  it("says OUTCOME_UNKNOWN when the name is there and may not survive a power cut", async () => {
    const place = await makeMemory();
    for (const publish of [putIfAbsent, replace]) {
      const broken = withDisk(place, () => ({
        syncDirectory: async (path) => {
          throw diskError("ENOSPC", "sync", path);
        },
      }));
      await expect(publish(broken.staging, `${place.directory}/name`, bytesOf("mine"))).rejects.toMatchObject({
        code: "OUTCOME_UNKNOWN",
        cause: { code: "DISK_FULL" },
      });
    }
  });
});

describe("a share that is asked by a link", () => {
  it("says whether a file is there, and leaves no temp file", async () => {
    const world = new World({ volume: nfs });
    const staging = await world.staging("ada");
    await staging.disk.createFile("/file", bytesOf("x"), { sync: true });
    expect(await canLinkFrom(staging, "/file")).toBe(true);
    expect(await canLinkFrom(staging, "/missing")).toBe(false);
    expect(world.tree("/")).toEqual({ "//temp/": "", "//file": "x" });
  });

  // A process that had slept took every hold of others for released, because the directory into
  // which it linked had been swept.
  it("does not take its asker's own directory, which was swept, for the absence of the file", async () => {
    const world = new World({ volume: nfs });
    const swept: string[] = [];
    const staging = { ...(await world.staging("ada")), onSwept: (path: string) => void swept.push(path) };
    await staging.disk.createFile("/file", bytesOf("x"), { sync: true });
    await world.ports("bea").disk.rmdir("/temp");
    await expect(canLinkFrom(staging, "/file")).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(swept).toEqual(["/temp"]);
  });

  it("does not do so either when its asker has another directory by the time that the link fails", async () => {
    const world = new World({ volume: nfs });
    const { disk, random } = await world.staging("ada");
    await disk.mkdir("/temp-2");
    await disk.createFile("/file", bytesOf("x"), { sync: true });
    let directory = "/temp";
    const slow = changedDisk(disk, (before) => ({
      async link(from, to) {
        directory = "/temp-2";
        await world.ports("bea").disk.rmdir("/temp");
        await before.link(from, to);
      },
    }));
    const staging = { disk: slow, random, directory: async () => directory };
    await expect(canLinkFrom(staging, "/file")).rejects.toMatchObject({ code: "LOCK_LOST" });
  });
});

describe("the cost of publishing", () => {
  it("is create, write, sync, link, sync directory, unlink; and no sync where none is asked for", async () => {
    const world = new World();
    const staging = await world.staging("ada");
    const costOf = async (action: () => Promise<unknown>): Promise<string[]> => {
      world.calls.length = 0;
      await action();
      return world.calls.map(({ what }) => what.replace(/ \/.*/, ""));
    };
    expect(await costOf(() => putIfAbsent(staging, "/a", bytesOf("x")))).toEqual([
      ...["create", "write", "sync", "link", "sync directory", "unlink"],
    ]);
    expect(await costOf(() => replace(staging, "/a", bytesOf("x")))).toEqual([
      ...["create", "write", "sync", "rename", "sync directory"],
    ]);
    expect(await costOf(() => putIfAbsent(staging, "/b", bytesOf("x"), { sync: false }))).toEqual([
      ...["create", "write", "link", "unlink"],
    ]);
  });
});
