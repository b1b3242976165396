// Sessions: no message is lost or archived twice, whatever moment a process dies at.
import { describe, expect, it } from "vitest";
import type { Archive, Message } from "../../../src/files/model/session.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { crashPointDisk } from "../../../harness/processes/crash-point-disk.ts";
import { makeRealSite, sites } from "../../sites/sites.ts";
import { until } from "../../waiting.ts";
import { codeOf } from "../file-sites.ts";
import { found, indexedOn, locksOf } from "./indexed-sites.ts";

const say = (content: string): Message => ({ role: "user", content });

async function contents(messages: Promise<readonly Message[]>): Promise<string[]> {
  return (await messages).map(({ content }) => content);
}

async function allOf(archives: AsyncIterable<Archive>): Promise<Archive[]> {
  const all: Archive[] = [];
  for await (const archive of archives) all.push(archive);
  return all;
}

/** Fails once, where the process dies; what it has in hand is given back when it is closed, as others would do it. */
function dyingAt(point: string): (ports: Ports) => Ports {
  let isDead = false;
  return (ports) => ({
    ...ports,
    disk: crashPointDisk(
      ports.disk,
      ({ target = "" }) =>
        [
          [/queue\/keys\//, "key"] as const,
          [/queue\/incoming\//, "ticket"] as const,
          [/\/archives\/[0-9]+$/, "archive"] as const,
        ].find(([pattern]) => pattern.test(target))?.[1],
      async (at) => {
        if (at !== point || isDead) return;
        isDead = true;
        throw new Error("the process died here");
      },
    ),
  });
}

describe.each(sites)("a session on %s", (_name, make) => {
  it("keeps its messages in order, and an archive clears them", async () => {
    const site = await indexedOn(make);
    const summaries: string[] = [];
    const ada = await site.open({
      sessions: {
        archiveSummary: async (messages) => {
          // No lock is held while it runs.
          expect(await locksOf(ada)).toEqual([]);
          summaries.push(messages.map(({ content }) => content).join());
          return `about ${messages.length}`;
        },
        extract: async ({ session, number, user, summary, messages }) => [
          { path: `memories/${user}/${session}-${number}.md`, text: `${summary}: ${messages[0]?.content}` },
        ],
      },
    });
    const session = await ada.session("talk", { user: "ada" });
    expect(await session.commit()).toBeUndefined();
    await session.append(say("one"), say("two"));
    const other = await (await site.open({ work: false })).session("talk");
    await other.append({ ...say("three"), at: "now", extra: { deep: [1] } });
    expect(await session.messages()).toEqual([
      say("one"),
      say("two"),
      { ...say("three"), at: "now", extra: { deep: [1] } },
    ]);
    const committed = await session.commit();
    expect(committed).toMatchObject({ archive: 1 });
    expect(await other.messages()).toEqual([]);
    await other.append(say("four"));
    expect(await contents(session.messages())).toEqual(["four"]);
    await ada.settled();
    await session.commit();
    await ada.settled();
    expect(summaries).toEqual(["one,two,three", "four"]);
    expect(await ada.readText("memories/ada/talk-1.md")).toBe("about 3: one");
    expect(await found(ada, "about")).toEqual(["memories/ada/talk-1.md", "memories/ada/talk-2.md"]);
    expect(await allOf(other.archives())).toMatchObject([
      { session: "talk", number: 1, user: "ada", summary: "about 3", messages: [{ content: "one" }, {}, {}] },
      { number: 2, messages: [{ content: "four" }] },
    ]);
  });

  it("archives each message once when many processes commit at the same time", async () => {
    const site = await indexedOn(make);
    const sessions = await Promise.all([1, 2, 3].map(async () => (await site.open({ work: false })).session("talk")));
    await Promise.all(sessions.map((session, index) => session.append(say(`first ${index}`), say(`second ${index}`))));
    await Promise.all(sessions.map((session) => session.commit()));
    const archived = (await allOf((await (await site.open()).session("talk")).archives())).flatMap(
      ({ messages }) => messages,
    );
    expect(archived.map(({ content }) => content).sort()).toEqual(
      [0, 1, 2].flatMap((index) => [`first ${index}`, `second ${index}`]).sort(),
    );
    expect(await sessions[0]?.messages()).toEqual([]);
  });
});

describe("the crash table of a commit", () => {
  it.each(["key", "ticket", "archive"].flatMap((step) => [`before ${step}`, `after ${step}`]))(
    "%s: nothing is lost",
    async (point) => {
      const site = await indexedOn(makeRealSite);
      const extract = async ({ number, messages }: Archive): Promise<{ path: string; text: string }[]> => [
        { path: `memories/${number}.md`, text: messages.map(({ content }) => content).join() },
      ];
      const dying = await site.open({ work: false, sessions: { extract } }, dyingAt(point));
      const session = await dying.session("talk");
      await session.append(say("one"), say("two"));
      const failure = await session.commit().catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(Error);
      await dying.close();
      const ada = await site.open({ sessions: { extract } });
      const again = await ada.session("talk");
      await ada.settled();
      // A ticket that could not be made may also have been taken back.
      const hasNotHappened = (await again.messages()).length > 0;
      if (!point.endsWith("key")) expect(hasNotHappened).toBe(false);
      if (hasNotHappened) {
        // Nothing has happened: the messages are there, and no archive is.
        expect(await contents(again.messages())).toEqual(["one", "two"]);
        expect(await allOf(again.archives())).toEqual([]);
        await again.commit();
        await ada.settled();
      }
      // The ticket has all that the archive needs, and its worker finishes the commit.
      expect(await again.messages()).toEqual([]);
      expect(await allOf(again.archives())).toMatchObject([{ number: 1, messages: [say("one"), say("two")] }]);
      expect(await ada.readText("memories/1.md")).toBe("one,two");
    },
  );

  it("a summary that fails or takes too long leaves the messages as they were", async () => {
    const site = await indexedOn(makeRealSite);
    let isDown = true;
    const ada = await site.open({
      functionTimeoutMs: 20,
      sessions: { archiveSummary: async () => (isDown ? await new Promise<never>(() => undefined) : "fine") },
    });
    const session = await ada.session("talk");
    await session.append(say("one"));
    await expect(session.commit()).rejects.toThrow("archiveSummary took longer than 20 ms");
    expect(await contents(session.messages())).toEqual(["one"]);
    isDown = false;
    expect(await session.commit()).toMatchObject({ archive: 1 });
  });

  it("an extraction that a dying worker has begun is done by another one", async () => {
    const site = await indexedOn(makeRealSite);
    let calls = 0;
    const dead = await site.open({
      work: false,
      sessions: {
        extract: async (_archive, { signal }) => {
          calls++;
          return await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("over"))));
        },
      },
    });
    const session = await dead.session("talk", { user: "ada" });
    const working = dead.work();
    await session.append(say("one"));
    await session.commit();
    await until(() => calls > 0);
    // As in a process that ends: what it has in hand goes back.
    await working.stop({ drainMs: 0 });
    const users: (string | undefined)[] = [];
    const ada = await site.open({
      sessions: {
        extract: async ({ user }) => {
          users.push(user);
          return [{ path: "memory.md", text: "one" }];
        },
      },
    });
    await ada.settled();
    expect(await ada.readText("memory.md")).toBe("one");
    expect(users).toEqual(["ada"]);
  });

  it("refuses what is no message and no name", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open({ work: false });
    expect(await codeOf(ada.session(""))).toBe("INVALID_NAME");
    const session = await ada.session("A talk / with names");
    await expect(session.append({ role: "user" } as never)).rejects.toThrow("content");
    await expect(session.append({ ...say("x"), score: Number.NaN })).rejects.toThrow(TypeError);
    expect(await codeOf(session.append(say("x".repeat(5_000_000))))).toBe("TOO_LARGE");
    expect(await session.messages()).toEqual([]);
    await ada.close();
    expect(await codeOf(session.append(say("late")))).toBe("CLOSED");
  });
});
