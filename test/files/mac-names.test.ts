// File systems of macOS: case and Unicode form do not distinguish names, and HFS+ lists names in the
// form NFD whatever they were created as. By the simulated disk; not run on a Mac.
import { describe, expect, it, onTestFinished } from "vitest";
import { FolderFiles } from "../../src/files/files.ts";
import { openTree } from "../../src/files/tree/open-tree.ts";
import { openBox } from "../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../src/handoff/handoff.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { createSimulation } from "../../src/testing/sim/simulation.ts";

const composed = "Grüße.txt".normalize("NFC");
const decomposed = composed.normalize("NFD");

describe.each(["kept", "decomposed"] as const)("on a Mac whose names are %s", (unicodeForms) => {
  function open(): Ports {
    const volume = { kind: "local", type: unicodeForms === "kept" ? "apfs" : "hfs", mountOptions: ["local"] } as const;
    return createSimulation({ volume, quirks: { caseInsensitive: true, unicodeForms } }).ports("till");
  }

  async function openFiles(ports: Ports): Promise<FolderFiles> {
    await ports.disk.mkdir("/shop");
    const files = new FolderFiles(await openTree(ports, "/shop"), {});
    onTestFinished(() => files.close());
    return files;
  }

  async function pathsOf(files: FolderFiles): Promise<string[]> {
    const paths: string[] = [];
    for await (const { path } of files.list("", { deep: true })) paths.push(path.normalize("NFC"));
    return paths;
  }

  it("a file is one file in every case and form: read, replaced, moved and removed by any of them", async () => {
    const files = await openFiles(open());
    await files.write(composed, "first");
    expect(await files.readText(decomposed)).toBe("first");
    await files.write(decomposed.toUpperCase(), "second");
    expect(await pathsOf(files)).toEqual([composed]);
    expect(await files.readText(composed)).toBe("second");
    await files.move(decomposed, "Ordner Ä/x");
    expect(await files.readText("ORDNER A\u0308/X")).toBe("second");
    for await (const { path } of files.list("Ordner Ä", {})) expect(await files.readText(path)).toBe("second");
    await files.remove("ordner ä");
    expect(await pathsOf(files)).toEqual([]);
  });

  it("a listed path is accepted by every call, and its stamp holds", async () => {
    const files = await openFiles(open());
    await files.write(`ä/${composed}`, "text");
    const listed = [];
    for await (const info of files.list("", { deep: true })) if (!info.directory) listed.push(info);
    expect(listed).toHaveLength(1);
    const [info] = listed;
    const { path } = info ?? { path: "" };
    const stamp = (await files.stat(path))?.stamp;
    await files.write(path, "new", { ifStamp: stamp });
    expect(await files.readText(`Ä/${composed}`)).toBe("new");
  });

  it("a lock excludes every spelling", async () => {
    const ports = open();
    await ports.disk.mkdir("/shop");
    const { tree, close } = await openTree(ports, "/shop");
    onTestFinished(close);
    const hold = await tree.locks.acquire(composed);
    for (const path of [decomposed, composed.toUpperCase(), decomposed.toLowerCase()])
      expect(await tree.locks.tryAcquire(path)).toBe(undefined);
    await hold.release();
  });

  it("a ticket with such a file arrives as it was sent", async () => {
    const ports = open();
    await ports.disk.mkdir("/box");
    const box = new BoxHandoff(await openBox(ports, "/box", { isSynced: true }), {}, async () => {
      throw new Error("no folder is opened");
    });
    onTestFinished(() => box.close());
    const large = "x".repeat(200_000);
    await box.publish({ [composed]: large, "zweite ä.csv": "1" });
    const delivery = await box.take();
    expect(delivery?.files.map(({ name }) => name).sort()).toEqual([composed, "zweite ä.csv"]);
    expect(await delivery?.text(composed)).toBe(large);
    await delivery?.ack();
  });
});
