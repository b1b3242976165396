// What a caller must not ask for, and what a file system may do behind the tree: typed errors, and nothing done.
import { execFileSync } from "node:child_process";
import {
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  existsSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { openFiles, type Message } from "../../src/files/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { makeRealSite, sites } from "../sites/sites.ts";
import { codeOf, filesOn, textsOf } from "./file-sites.ts";

describe.each(sites)("bad input on %s", (_name, make) => {
  it("refuses paths that lead out, that are not paths, or that name what is not part of the tree", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    await files.write("a", "a");
    const staged = await site.stage("staged", { x: "x" });
    for (const path of ["../out", "a/../../out", "/etc/passwd", "a\0b", "x".repeat(300), ".holdfast", ".Holdfast/x"])
      for (const call of [
        () => files.read(path),
        () => files.stat(path),
        () => files.write(path, "x"),
        () => files.update(path, () => "x"),
        () => files.remove(path),
        () => files.move(path, "b"),
        () => files.move("a", path),
        () => files.add(path, staged),
      ])
        expect([path, await codeOf(call())]).toEqual([path, "INVALID_PATH"]);
    for (const path of ["", ".", "a/.."])
      for (const call of [
        () => files.write(path, "x"),
        () => files.remove(path),
        () => files.move(path, "b"),
        () => files.add(path, staged),
      ])
        expect([path, await codeOf(call())]).toEqual([path, "INVALID_PATH"]);
    expect(await textsOf(files)).toEqual({ a: "a" });
    expect(await site.onDisk(staged)).toEqual({ x: "x" });
  });

  it("refuses arguments and options that it does not know", async () => {
    const files = await (await filesOn(make)).open();
    const wrong = files as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
    for (const given of [
      () => wrong["read"]!(1),
      () => wrong["write"]!("a", 1),
      () => wrong["write"]!("a", "x", { ifStamps: "" }),
      () => wrong["write"]!("a", "x", { ifStamp: 1 }),
      () => wrong["update"]!("a", "x"),
      () => wrong["update"]!("a", () => 1),
      () => wrong["add"]!("a", "b", { naming: "numbers" }),
      () => wrong["add"]!("a"),
      () => wrong["remove"]!("a", { deep: true }),
      () => wrong["move"]!("a"),
      () => wrong["move"]!("a", "b", { within: {} }),
    ])
      await expect(given()).rejects.toThrow(TypeError);
    expect(() => files.list(1 as unknown as string)).toThrow(TypeError);
    expect(() => files.changes({ after: -1 })).toThrow(RangeError);
    await expect(files.write("a", "x", { timeoutMs: NaN })).rejects.toThrow(RangeError);
  });

  it("refuses what no rename could do: a file where a directory must be, and the other way round", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    await files.write("file", "1");
    await files.write("directory/x", "2");
    for (const call of [
      () => files.write("file/x", "3"),
      () => files.write("directory", "3"),
      () => files.move("directory/x", "file/y"),
      () => files.move("directory", "file"),
      () => files.move("file", "directory"),
      async () => files.add("file/x", await site.stage("staged", { x: "x" })),
    ])
      expect(await codeOf(call())).toBe("FILE_EXISTS");
    for (const call of [() => files.read("directory"), () => files.read("file/x")])
      expect(await codeOf(call())).toBe("NO_SUCH_FILE");
    expect(await files.stat("file/x")).toBeUndefined();
    expect(await textsOf(files)).toEqual({ "directory/x": "2", file: "1" });
  });

  it("refuses a staged directory that is none, or that lies in the tree or around it", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    await files.write("a/x", "1");
    const staged = await site.stage("staged", { x: "x" });
    for (const path of [`${site.root}/a`, site.root, site.directory, `${staged}/x`, `${site.directory}/missing`])
      expect([path, await codeOf(files.add("b", path))]).toEqual([path, "INVALID_PATH"]);
    expect(await textsOf(files)).toEqual({ "a/x": "1" });
  });

  it("takes two Unicode forms of a name for one file", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    const [composed, decomposed] = ["caf\u00e9/men\u00fc", "cafe\u0301/menu\u0308"];
    await files.write(decomposed, "1");
    expect(await files.readText(composed)).toBe("1");
    await files.write(composed, "2");
    expect(await textsOf(files)).toEqual({ [decomposed]: "2" });
    await files.remove(composed);
    expect(await files.stat(decomposed)).toBeUndefined();
  });
});

describe("a tree that other programs touch", () => {
  const mounts: string[] = [];
  afterEach(() => {
    for (const mount of mounts.splice(0)) execFileSync("umount", [mount]);
  });

  it("refuses a symbolic link that leads out, and does not list any", async () => {
    const site = await filesOn(makeRealSite);
    const files = await site.open();
    await files.write("inside/a", "a");
    mkdirSync(`${site.directory}/outside`);
    writeFileSync(`${site.directory}/outside/secret`, "secret");
    symlinkSync(`${site.directory}/outside`, `${site.root}/out`);
    symlinkSync("inside", `${site.root}/in`);
    for (const call of [
      () => files.read("out/secret"),
      () => files.write("out/secret", "x"),
      () => files.remove("out/secret"),
      () => files.move("inside", "out/inside"),
    ])
      expect(await codeOf(call())).toBe("INVALID_PATH");
    expect(await files.readText("in/a")).toBe("a");
    expect(await files.write("in/b", "b")).toMatchObject({ path: "inside/b" });
    expect(await textsOf(files)).toEqual({ "inside/a": "a", "inside/b": "b" });
    expect(readFileSync(`${site.directory}/outside/secret`, "utf8")).toBe("secret");
    // What a link leads to is not removed with the directory that the link is in.
    symlinkSync(`${site.directory}/outside`, `${site.root}/inside/out`);
    await files.remove("inside");
    expect(existsSync(`${site.directory}/outside/secret`)).toBe(true);
  });

  it("refuses a staged directory with links in it", async () => {
    const site = await filesOn(makeRealSite);
    const files = await site.open();
    const staged = await site.stage("staged", { a: "a" });
    symlinkSync("/etc/passwd", `${staged}/b`);
    expect(await codeOf(files.add("guide", staged))).toBe("INVALID_PATH");
    expect(await textsOf(files)).toEqual({});
  });

  it("keeps the mode of a file that it replaces", async () => {
    const site = await filesOn(makeRealSite);
    const files = await site.open();
    await files.write("script", "1");
    execFileSync("chmod", ["755", `${site.root}/script`]);
    await files.write("script", "2");
    await files.update("script", () => "3");
    expect(execFileSync("stat", ["-c", "%a", `${site.root}/script`], { encoding: "utf8" }).trim()).toBe("755");
  });

  it("sees a file that was edited behind its back, also with the same size and time", async () => {
    const site = await filesOn(makeRealSite);
    const files = await site.open();
    await files.write("a", "one");
    const longAgo = new Date(Date.now() - 60_000);
    utimesSync(`${site.root}/a`, longAgo, longAgo);
    const { stamp } = (await files.stat("a"))!;
    // Changed in place, with the time put back: the file system alone sets the ctime.
    writeFileSync(`${site.root}/a`, "ONE");
    utimesSync(`${site.root}/a`, longAgo, longAgo);
    expect((await files.stat("a"))?.stamp).not.toBe(stamp);
    expect(await codeOf(files.write("a", "three", { ifStamp: stamp }))).toBe("PRECONDITION_FAILED");
    writeFileSync(`${site.root}/b`, "two");
    utimesSync(`${site.root}/b`, longAgo, longAgo);
    renameSync(`${site.root}/b`, `${site.root}/a`);
    expect((await files.stat("a"))?.stamp).not.toBe(stamp);
    expect(await codeOf(files.write("a", "three", { ifStamp: stamp }))).toBe("PRECONDITION_FAILED");
    // Written in place, at once: a file so young is never taken from memory.
    await files.write("c", "old");
    const before = (await files.stat("c"))?.stamp;
    writeFileSync(`${site.root}/c`, "new");
    expect((await files.stat("c"))?.stamp).not.toBe(before);
  });

  it("takes a file with several names in, and leaves the other name as it is", async () => {
    const site = await filesOn(makeRealSite);
    const files = await site.open();
    const staged = await site.stage("staged", { a: "a" });
    linkSync(`${staged}/a`, `${site.directory}/second-name`);
    await files.add("guide", staged);
    await files.write("guide/a", "changed");
    expect(readFileSync(`${site.directory}/second-name`, "utf8")).toBe("a");
  });

  it.skipIf(process.geteuid?.() !== 0)(
    "refuses to change what is on another file system mounted inside",
    async ({ skip }) => {
      const site = await filesOn(makeRealSite);
      const files = await site.open();
      await files.write("a/b/c", "1");
      await files.write("x", "x");
      const mount = `${site.root}/a/b`;
      try {
        execFileSync("mount", ["-t", "tmpfs", "none", mount], { stdio: "ignore" });
      } catch {
        skip("This machine allows no mounts.");
      }
      mounts.push(mount);
      writeFileSync(`${mount}/kept`, "kept");
      expect(await files.readText("a/b/kept")).toBe("kept");
      for (const call of [
        () => files.write("a/b/kept", "2"),
        () => files.write("a/b/new", "2"),
        () => files.remove("a/b/kept"),
        () => files.remove("a/b"),
        () => files.remove("a"),
        () => files.move("a/b", "c"),
        () => files.move("x", "a/b/x"),
        async () => files.add("a", await site.stage("staged", { y: "y" })),
      ])
        expect(await codeOf(call())).toBe("CROSS_DEVICE");
      expect(readFileSync(`${mount}/kept`, "utf8")).toBe("kept");
      // Nothing is stuck.
      await files.write("a/d", "2", { timeoutMs: 0 });
    },
  );
});

describe("options of a wrong kind", () => {
  it("are refused by openFiles, each by its name, before anything is made", async () => {
    const root = join(makeScratch(), "tree");
    const wrong: readonly [object, RegExp][] = [
      [{ index: true }, /index/],
      [{ index: null }, /index/],
      [{ index: {} }, /index/],
      [{ extract: 1 }, /extract/],
      [{ extract: null }, /extract/],
      [{ embed: "x" }, /embed/],
      [{ summarize: {} }, /summarize/],
      [{ sessions: 1 }, /sessions/],
      [{ sessions: { foo: 1 } }, /foo/],
      [{ sessions: { extract: 3 } }, /sessions\.extract/],
      [{ functionTimeoutMs: 0 }, /functionTimeoutMs/],
      [{ functionTimeoutMs: -1 }, /functionTimeoutMs/],
      [{ functionTimeoutMs: 1e12 }, /functionTimeoutMs/],
      [{ work: "no" }, /work/],
    ];
    for (const [options, named] of wrong) await expect(openFiles(root, options)).rejects.toThrow(named);
    for (const [options] of wrong)
      expect(await openFiles(root, options).catch((error: unknown) => (error as Error).name)).toMatch(
        /^(Type|Range)Error$/,
      );
    expect(existsSync(root)).toBe(false);
  });

  it("are refused by the calls of a tree and of a session", async () => {
    await using files = await openFiles(makeScratch());
    const session = await files.session("monday");
    const circular: Message = { role: "user", content: "c" };
    circular["self"] = { in: [circular] };
    const any = files as unknown as Record<string, (...given: unknown[]) => unknown>;
    for (const [call, ...given] of [
      ["write", "a", "x", { signal: 1 }],
      ["read", "a", { signal: {} }],
      ["search", "x", { signal: 1 }],
      ["search", "x", { under: 1 }],
      ["settled", { under: 5 }],
      ["settled", { signal: 3 }],
      ["verify", { onProgress: 5 }],
      ["rebuildIndex", { onProgress: 5 }],
      ["session", "u", { user: 5 }],
    ] as const)
      await expect(async () => any[call]!(...given), `${call} ${JSON.stringify(given)}`).rejects.toThrow(TypeError);
    await expect(session.append(circular)).rejects.toThrow(/contain itself/);
    expect(await session.messages()).toEqual([]);
  });
});
