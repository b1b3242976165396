// Sidecars: the newest version writes, stale results are dropped before they are written.
import { describe, expect, it } from "vitest";
import { sites, makeRealSite } from "../../sites/sites.ts";
import { until } from "../../waiting.ts";
import { textsOf } from "../file-sites.ts";
import { found, indexedOn } from "./indexed-sites.ts";

const summarize = async (directory: string, entries: readonly string[]) => ({
  abstract: `abstract of ${directory}`,
  overview: entries.join(),
});

describe.each(sites)("sidecars on %s", (_name, make) => {
  it("show what is in each directory, are found, and make no sidecars of their own", async () => {
    const site = await indexedOn(make);
    const ada = await site.open({ summarize });
    await ada.write("docs/a.md", "a");
    await ada.write("docs/b.md", "b");
    await ada.settled();
    expect(await textsOf(ada)).toMatchObject({
      "docs/.abstract.md": "abstract of docs",
      "docs/.overview.md": "a.md,b.md",
    });
    expect(await found(ada, "abstract", "docs")).toEqual(["docs/.abstract.md"]);
    await ada.remove("docs/a.md");
    await ada.settled();
    expect(await ada.readText("docs/.overview.md")).toBe("b.md");
  });
});

describe("the sidecars of a directory", () => {
  it("are refreshed for every directory from a change up to the root, and for those that came in with it", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open({ summarize });
    const overviews = async (): Promise<Record<string, string>> => {
      await ada.settled();
      const sidecars = Object.entries(await textsOf(ada)).filter(([path]) => path.endsWith(".overview.md"));
      return Object.fromEntries(sidecars.map(([path, text]) => [path.slice(0, -"/.overview.md".length), text]));
    };
    await ada.write("x/a.md", "1");
    await ada.settled();
    await ada.write("x/y/z/b.md", "1");
    expect(await overviews()).toEqual({ "": "x", x: "a.md,y", "x/y": "z", "x/y/z": "b.md" });
    await ada.add("lib/v1/guide", await site.stage("staged", { "deep/one.md": "1" }));
    expect(await overviews()).toMatchObject({
      "": "lib,x",
      lib: "v1",
      "lib/v1": "guide",
      "lib/v1/guide": "deep",
      "lib/v1/guide/deep": "one.md",
    });
    await ada.move("lib/v1", "x/y/v1");
    expect(await overviews()).toMatchObject({
      lib: "",
      "x/y": "v1,z",
      "x/y/v1": "guide",
      "x/y/v1/guide/deep": "one.md",
    });
  });

  it("are made once for many changes, and a stale result is never written", async () => {
    const site = await indexedOn(makeRealSite);
    const calls: string[] = [];
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const slow = async (directory: string, entries: readonly string[]) => {
      const isFirst = directory === "docs" && !calls.includes("docs: a.md");
      calls.push(`${directory}: ${entries.join()}`);
      if (isFirst) await gate;
      return await summarize(directory, entries);
    };
    const ada = await site.open({ summarize: slow });
    await ada.write("docs/a.md", "a");
    await until(() => calls.includes("docs: a.md"));
    // Asked for while the first one is being made: a new version, and the first one is stale.
    for (const name of ["b", "c", "d"]) await ada.write(`docs/${name}.md`, name);
    await until(async () => (await ada.stat("docs/.overview.md")) !== undefined);
    const written = await ada.readText("docs/.overview.md");
    expect(written).not.toBe("a.md");
    release();
    await ada.settled();
    expect(await ada.readText("docs/.overview.md")).toBe("a.md,b.md,c.md,d.md");
    expect(calls.filter((call) => call.startsWith("docs: ")).length).toBeLessThanOrEqual(5);
  });

  it("do not bring back a directory that was removed while they were made", async () => {
    const site = await indexedOn(makeRealSite);
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    let isCalled = false;
    const ada = await site.open({
      summarize: async (directory, entries) => {
        if (directory === "docs") {
          isCalled = true;
          await gate;
        }
        return await summarize(directory, entries);
      },
    });
    await ada.write("docs/a.md", "a");
    await until(() => isCalled);
    await ada.remove("docs");
    release();
    await ada.settled();
    expect(await ada.stat("docs")).toBeUndefined();
  });
});
