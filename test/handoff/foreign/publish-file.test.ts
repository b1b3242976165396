// A file that is handed over without a box: whole or not there, its done file last.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { publishFile } from "../../../src/handoff/index.ts";
import { publishFileOn } from "../../../src/handoff/foreign/publish-file.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { makeScratch } from "../../sites/scratch.ts";
import { sites } from "../../sites/sites.ts";
import { errnos, lostReplies, World } from "../../sites/world.ts";
import { filesIn } from "../publish/opened-box.ts";

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

describe.each(sites)("on %s", (_name, makeSite) => {
  it("a file appears whole, is replaced only on request, and its done file describes it", async () => {
    const { directory, openPorts } = await makeSite();
    const ports = await openPorts();
    const path = `${directory}/a.csv`;
    const read = async (name: string): Promise<string> =>
      Buffer.from(await ports.disk.readFile(`${directory}/${name}`, 1000)).toString();
    const file = { name: "a.csv", size: 1, sha256: sha256Of("1"), records: 1 };
    expect(await publishFileOn(ports, path, "1", { records: 1, key: "k", done: {} })).toEqual(file);
    expect(JSON.parse(await read("a.csv.done"))).toMatchObject({ key: "k", files: [file] });
    expect(await failureOf(publishFileOn(ports, path, "2"))).toMatchObject({ code: "FILE_EXISTS", path });
    expect(await read("a.csv")).toBe("1");
    await publishFileOn(ports, path, "2", { replace: true, done: { content: "sha256sum" } });
    expect(await read("a.csv.done")).toBe(`${sha256Of("2")}  a.csv\n`);
    // A done file that is there already would stand for the new file before it is there.
    await ports.disk.unlink(path);
    expect(await failureOf(publishFileOn(ports, path, "3", { done: {} }))).toMatchObject({ code: "FILE_EXISTS" });
    expect(await filesIn(ports.disk, directory)).toEqual(["a.csv.done"]);
  });

  it("a source that fails leaves nothing", async () => {
    const { directory, openPorts } = await makeSite();
    const ports = await openPorts();
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(100_000);
      throw new Error("no more");
    }
    const failure = await failureOf(publishFileOn(ports, `${directory}/a.bin`, failing(), { done: {} }));
    expect(failure).toMatchObject({ message: "no more" });
    expect(await filesIn(ports.disk, directory)).toEqual([]);
  });
});

it("a disk that fails at any call leaves no done file without its file, and no part of one", async () => {
  for (const label of [...errnos, ...lostReplies])
    for (let at = 1, hasCome = true; hasCome; at++) {
      const world = new World();
      const ports = world.ports("ada");
      await ports.disk.mkdir("/out");
      let code: string | undefined;
      hasCome = await world.withFault({ process: "ada", at, label, lasting: false }, async () => {
        await publishFileOn(ports, "/out/a.csv", "whole", { done: {} }).catch(
          (error: unknown) => (code = (error as { code: string }).code),
        );
      });
      const tree = world.tree("/out");
      const what = `${label} at call ${at}: told ${code}`;
      if ("/out/a.csv.done" in tree || code === undefined) expect(tree["/out/a.csv"], `after ${what}`).toBe("whole");
      else expect([undefined, "whole"], `after ${what}`).toContain(tree["/out/a.csv"]);
      if (label === "ENOSPC" && code !== undefined)
        expect(code, `after ${what}`).toMatch(/^(DISK_FULL|OUTCOME_UNKNOWN)$/);
    }
});

it("publishFile takes a path of this machine, and reports mistakes before it writes", async () => {
  const directory = makeScratch();
  await publishFile(`${directory}/a.csv`, "1");
  expect(readFileSync(`${directory}/a.csv`, "utf8")).toBe("1");
  const wrong: readonly [options: object, kind: typeof Error][] = [
    [{ done: true }, TypeError],
    [{ done: { done: "{name}" } }, TypeError],
    [{ done: { done: "" } }, TypeError],
    [{ done: { content: "yaml" } }, TypeError],
    [{ done: { contents: "empty" } }, TypeError],
    [{ replaces: true }, TypeError],
    [{ replace: "yes" }, TypeError],
    [{ records: -1 }, RangeError],
    [{ key: "" }, TypeError],
  ];
  for (const [options, kind] of wrong)
    expect(
      await failureOf(publishFile(`${directory}/b.csv`, "1", options)),
      `options ${JSON.stringify(options)}`,
    ).toBeInstanceOf(kind);
  const long = `${directory}/${"x".repeat(252)}`;
  expect(await failureOf(publishFile(long, "1", { done: {} }))).toMatchObject({ code: "INVALID_NAME" });
  expect(await failureOf(publishFile(`${directory}/${"x".repeat(300)}`, "1"))).toMatchObject({ code: "INVALID_PATH" });
  expect(await failureOf(publishFile(`${directory}/none/a`, "1"))).toMatchObject({ code: "INVALID_PATH" });
});
