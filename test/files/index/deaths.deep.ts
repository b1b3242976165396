// Workers that die: their death is not a failure of the work, and one bad file costs only that file.
import { describe, expect, it } from "vitest";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import { makeRealSite } from "../../sites/sites.ts";
import { until } from "../../waiting.ts";
import { codeOf } from "../file-sites.ts";
import { found, indexedOn, locksOf, type IndexedSite } from "./indexed-sites.ts";

/** As if so many workers had died with each ticket that waits: a claim is counted in its name, and nothing is noted. */
async function letDie(site: IndexedSite, deaths: number): Promise<void> {
  const incoming = `${site.state}/queue/incoming`;
  for (const priority of await site.disk.list(incoming))
    for (const minute of await site.disk.list(`${incoming}/${priority}`))
      for (const name of await site.disk.list(`${incoming}/${priority}/${minute}`)) {
        const directory = `${incoming}/${priority}/${minute}`;
        await site.disk.rename(`${directory}/${name}`, `${directory}/${name.replace(/-0\.json$/, `-${deaths}.json`)}`);
      }
}

/** Older builds published a ticket for each change. */
async function publishAsOlderBuild(site: IndexedSite, change: number): Promise<void> {
  const handoff = new BoxHandoff(await openBox(await site.openPorts(), `${site.state}/queue`));
  await handoff.publish({ task: "index" }, { key: `index/${change}`, meta: { task: "index", change } });
  await handoff.close();
}

const sessions = {
  extract: async ({ messages }: { readonly messages: readonly { readonly content: string }[] }) => [
    { path: "memory.md", text: messages.map(({ content }) => content).join() },
  ],
};
const summarize = async (_: string, entries: readonly string[]) => ({ abstract: entries.join(), overview: "" });

/** A file and a commit of a session, whose tickets wait. */
async function withTickets(site: IndexedSite): Promise<void> {
  const ada = await site.open({ work: false, sessions, summarize });
  await ada.write("d/a.md", "a wolf");
  const session = await ada.session("s");
  await session.append({ role: "user", content: "remember me" });
  await session.commit();
  await ada.close();
  await publishAsOlderBuild(site, 1);
}

describe("work whose workers died", () => {
  it.each([5, 12])("is done by the next worker, after %i deaths", async (deaths) => {
    const site = await indexedOn(makeRealSite);
    await withTickets(site);
    await letDie(site, deaths);
    const bob = await site.open({ sessions, summarize });
    await bob.settled();
    expect(await found(bob, "wolf")).toEqual(["d/a.md"]);
    expect(await bob.readText("memory.md")).toBe("remember me");
    expect(await bob.readText("d/.abstract.md")).toBe("a.md");
    expect(await bob.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("is set aside after 13 deaths, which settled and verify report, and is done when it is tried again", async () => {
    const site = await indexedOn(makeRealSite);
    await withTickets(site);
    await letDie(site, 13);
    const bob = await site.open({ sessions, summarize });
    await bob.write("b.md", "a wolf");
    await expect(bob.settled()).rejects.toMatchObject({
      code: "INDEX_FAILED",
      message: expect.stringContaining("13 workers died"),
    });
    expect(await found(bob, "wolf")).toEqual(["b.md"]);
    const { ok, problems } = await bob.verify();
    expect(ok).toBe(false);
    expect(problems.map(({ path, severity }) => `${severity}: ${path}`).sort()).toEqual([
      "damage: d/a.md",
      "damage: session s, archive 1",
    ]);
    expect((await bob.verify({ repair: true })).problems.map(({ repaired }) => repaired)).toEqual([true, true]);
    await bob.settled();
    expect(await found(bob, "wolf")).toEqual(["b.md", "d/a.md"]);
    expect(await bob.readText("memory.md")).toBe("remember me");
    expect(await bob.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("is worked on alone when it may be the cause, and each file of it on its own", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open({ work: false });
    await ada.add("all", await site.stage("staged", { "a.md": "a wolf", "b.md": "a wolf", "c.md": "a wolf" }));
    await ada.write("free.md", "a wolf");
    await until(async () => (await ada.verify()).checked === 4);
    await ada.close();
    await publishAsOlderBuild(site, 2);
    await letDie(site, 4);
    let running = 0;
    const besides: number[] = [];
    const extract = async (path: string, content: { text(): Promise<string> }): Promise<string> => {
      running++;
      // Time passes: what else is worked on in this process would begin.
      for (let look = 0; look < 5; look++) await new Promise((resolve) => setTimeout(resolve, 10));
      if (path === "free.md") besides.push(running - 1);
      running--;
      return await content.text();
    };
    const bob = await site.open({ extract });
    await bob.settled();
    expect(await found(bob, "wolf")).toEqual(["all/a.md", "all/b.md", "all/c.md", "free.md"]);
    expect(besides).toEqual([0]);
  });
});

describe("a file that hangs in `extract`", () => {
  it("costs only itself: the others of its change are found, and their lock is free", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open({
      // Longer than a file is waited for that keeps the others of its change.
      functionTimeoutMs: 6_000,
      extract: async (path, content, { signal }) => {
        if (path.endsWith("hangs.md"))
          await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
        return await content.text();
      },
    });
    const files = Object.fromEntries(["a", "b", "hangs", "c"].map((name) => [`${name}.md`, "a wolf"]));
    await ada.add("all", await site.stage("staged", files));
    await until(async () => (await found(ada, "wolf")).length === 3);
    expect(await found(ada, "wolf")).toEqual(["all/a.md", "all/b.md", "all/c.md"]);
    await until(async () => !(await locksOf(ada)).includes("all"));
    expect(await codeOf(ada.remove("all"))).toBe("nothing failed");
  });
});
