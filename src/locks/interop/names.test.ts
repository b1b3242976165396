// Names and tokens of foreign lock files: the vector of the program that they come from, and what
// else it would read and write.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  ancestorsOf,
  directoryLockOf,
  encodeToken,
  isLockFileName,
  lockFilesOf,
  parseToken,
  sidecarOf,
} from "./names.ts";

describe("the name of a lock file", () => {
  it("is the one that the other program pins in its own tests", () => {
    expect(sidecarOf("/data/中文 name..txt")).toBe("/data/.exact.ovlock.name..txt.591847f8876e86f7");
  });

  it.each([
    ["/d/plain.txt", "plain.txt"],
    ["/d/a b  c", "a_b_c"],
    ["/d/...hidden__", "hidden"],
    ["/d/._.", "path"],
    ["/d/中文", "path"],
    ["/d/dash-and_under.tar.gz", "dash-and_under.tar.gz"],
    ["/d/😀x😀", "x"],
    [`/d/${"n".repeat(100)}`, "n".repeat(80)],
  ])("makes %s readable as %s, with a hash that tells it from all others", (path, safe) => {
    const file = sidecarOf(path);
    expect(file.slice(0, -16)).toBe(`/d/.exact.ovlock.${safe}.`);
    expect(file.slice(-16)).toMatch(/^[0-9a-f]{16}$/);
  });

  it("differs for two paths whose readable parts are the same", () => {
    expect(sidecarOf("/d/a b")).not.toBe(sidecarOf("/d/a_b"));
    expect(sidecarOf("/d/x")).not.toBe(sidecarOf("/e/x").replace("/e/", "/d/"));
  });

  it("has the hash of the path as Windows writes it, where it begins with a drive or a server", () => {
    const hashOf = (path: string): string => createHash("sha1").update(path).digest("hex").slice(0, 16);
    expect(sidecarOf("C:/data/x")).toBe(`C:/data/.exact.ovlock.x.${hashOf("C:\\data\\x")}`);
    expect(sidecarOf("//till/data/x")).toBe(`//till/data/.exact.ovlock.x.${hashOf("\\\\till\\data\\x")}`);
    expect(sidecarOf("/c:/x")).toBe(`/c:/.exact.ovlock.x.${hashOf("/c:/x")}`);
  });

  it("is looked for in the path and beside it, and a root has only the one in it", () => {
    expect(lockFilesOf("/d/x")).toEqual(["/d/x/.path.ovlock", sidecarOf("/d/x")]);
    expect(lockFilesOf("/")).toEqual(["/.path.ovlock"]);
    expect(lockFilesOf("C:")).toEqual(["C:/.path.ovlock"]);
    expect(sidecarOf("/top")).toMatch(/^\/\.exact\.ovlock\.top\.[0-9a-f]{16}$/);
    expect(directoryLockOf("/d")).toBe("/d/.path.ovlock");
  });

  it("is told from all other names", () => {
    expect(isLockFileName(".path.ovlock")).toBe(true);
    expect(isLockFileName(".exact.ovlock.x.0123456789abcdef")).toBe(true);
    expect(isLockFileName("path.ovlock")).toBe(false);
    expect(isLockFileName(".path.ovlock.old")).toBe(false);
  });

  it("may be in every directory above", () => {
    expect(ancestorsOf("/a/b/c")).toEqual(["/a/b", "/a", "/"]);
    expect(ancestorsOf("/")).toEqual([]);
    expect(ancestorsOf("C:/a")).toEqual(["C:"]);
  });
});

describe("the token of a lock file", () => {
  it("has nineteen digits of nanoseconds whatever the time, so that it can be written over itself", () => {
    const early = encodeToken({ handle: "h", timeMs: 0, mode: "exact" });
    const late = encodeToken({ handle: "h", timeMs: 1_794_776_541_784.9, mode: "tree" });
    expect(late).toBe("h:1794776541784000000:T");
    expect(early).toBe("h:0000000000000000000:E");
  });

  it("reads as what was written", () => {
    const token = { handle: "holdfast.x", timeMs: 1_794_776_541_784, mode: "tree" } as const;
    expect(parseToken(encodeToken(token))).toEqual(token);
    expect(parseToken(`${encodeToken(token)}\n`)).toEqual(token);
  });

  it.each([
    ["h:1794776541784000000:P", { handle: "h", timeMs: 1_794_776_541_784, mode: "tree" }],
    ["h:1794776541784000000:S", { handle: "h", timeMs: 1_794_776_541_784, mode: "tree" }],
    ["a:b:5:E", { handle: "a:b", timeMs: 0, mode: "exact" }],
    ["h:1794776541784000000", { handle: "h", timeMs: 0, mode: "exact" }],
  ])("of older programs is read as they meant it: %s", (text, token) => {
    expect(parseToken(text)).toEqual(token);
  });

  it.each([
    "",
    "\n",
    "h",
    "h:12",
    "h:-5:T",
    "h:1e9:T",
    "h:5:X",
    ":5:T",
    "h::T",
    "h:5:T\nh:5:T",
    "\0\0\0\0",
    `h:${"9".repeat(40)}:T`,
  ])("is not seen in %j", (text) => {
    expect(parseToken(text)).toBe(undefined);
  });
});
