// The rows of the failure tables in which a process is alive and slow, and another one comes in between: and what cannot
// happen at any moment.
import { expect } from "vitest";
import { sessionName } from "../../../harness/processes/files/works.ts";
import { codeOf, textsIn } from "../file-sites.ts";
import { found } from "../index/indexed-sites.ts";
import type { Arena } from "./arena.ts";
import { countKeys, mustBeWhole, prepare } from "./play.ts";
import { after, before, messages } from "./rows.ts";

/** Nothing lapses while a race is played. */
const longLeaseMs = 60_000;

export const races: readonly { readonly title: string; readonly play: (arena: Arena) => Promise<void> }[] = [
  {
    title: "add: the log worker makes the ticket before the adder, which takes its offer back",
    play: async (arena) => {
      await prepare(arena, {});
      const keys = await countKeys(arena);
      const adder = await arena.holdAt({
        work: "adds a directory",
        at: "before claiming the key of a ticket",
        leaseMs: longLeaseMs,
      });
      const bob = await arena.open("bob", { hasSummaries: false });
      while ((await countKeys(arena)) === keys) await arena.pause();
      expect(await codeOf(bob.remove("guide", { timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
      const startMs = arena.nowMs();
      await adder.goOn();
      await mustBeWhole(arena, bob, { expected: after["adds a directory"] });
      // It was not waited for until the offer had lapsed.
      expect(arena.nowMs() - startMs).toBeLessThan(longLeaseMs / 2);
      expect(await countKeys(arena)).toBe(keys + 1);
      await adder.end();
      await bob.close();
    },
  },
  {
    title: "add: a transfer that is never received lapses, and the directory can be removed without a worker",
    play: async (arena) => {
      await prepare(arena, {});
      await arena.killAt({ work: "adds a directory", at: "after making the ticket" });
      const carl = await arena.open("carl", { hasSummaries: false, work: false });
      await carl.remove("guide", { timeoutMs: longLeaseMs });
      await carl.close();
      // The worker of the late ticket finds no transfer, and nothing to index.
      const bob = await arena.open("bob", { hasSummaries: false });
      await mustBeWhole(arena, bob, { expected: before });
      await bob.close();
    },
  },
  {
    title: "add: what was added is locked until a worker has indexed it, also while that extracts",
    play: async (arena) => {
      await prepare(arena, { prepared: "adds a directory" });
      const carl = await arena.open("carl", { hasSummaries: false, work: false });
      expect(await codeOf(carl.remove("guide", { timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
      const worker = await arena.holdAt({
        work: "works on what is queued",
        at: "while a file is extracted",
        leaseMs: longLeaseMs,
      });
      expect(await codeOf(carl.remove("guide", { timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
      await worker.goOn();
      await worker.end();
      await carl.remove("guide", { timeoutMs: 0 });
      await carl.close();
      const bob = await arena.open("bob", { hasSummaries: false });
      await mustBeWhole(arena, bob, { expected: before });
      await bob.close();
    },
  },
  {
    title: "add: when a worker has died with the lock, the next one takes a lock of its own",
    play: async (arena) => {
      await prepare(arena, { prepared: "adds a directory" });
      const work = "works on what is queued";
      await arena.killAt({ work, at: "after receiving the lock" });
      const worker = await arena.holdAt({ work, at: "while a file is extracted", leaseMs: longLeaseMs });
      const carl = await arena.open("carl", { hasSummaries: false, work: false });
      expect(await codeOf(carl.remove("guide", { timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
      await worker.goOn();
      await worker.end();
      await mustBeWhole(arena, carl, { expected: after["adds a directory"] });
      await carl.close();
    },
  },
  {
    title: "refresh of summaries: a summary that was begun earlier never replaces a newer one",
    play: async (arena) => {
      await prepare(arena, { prepared: "adds a new state of a directory", hasSummaries: true });
      const worker = await arena.holdAt({
        work: "works on what is queued",
        at: 'while "a" is summarised',
        hasSummaries: true,
        leaseMs: longLeaseMs,
      });
      const bob = await arena.open("bob", { hasSummaries: true });
      await bob.write("a/w.md", "wolf w");
      const overview = async (): Promise<string> => await bob.readText("a/.overview.md").catch(() => "");
      while (!(await overview()).includes("w.md")) await arena.pause();
      await worker.goOn();
      await worker.end();
      const expected = { ...after["adds a new state of a directory"], "a/w.md": "wolf w" };
      await mustBeWhole(arena, bob, { expected, hasSummaries: true });
      await bob.close();
    },
  },
  {
    title: "refresh of summaries: two writers of the sidecars of one directory do not interleave",
    play: async (arena) => {
      await prepare(arena, { prepared: "adds a new state of a directory", hasSummaries: true });
      const worker = await arena.holdAt({
        work: "works on what is queued",
        at: "after bringing in .abstract.md",
        hasSummaries: true,
        leaseMs: longLeaseMs,
      });
      const bob = await arena.open("bob", { hasSummaries: true });
      await bob.write("a/w.md", "wolf w");
      await bob.write("w.md", "wolf w");
      // Its worker goes on, and comes to the sidecars that are locked.
      while (!(await found(bob, "wolf")).includes("w.md")) await arena.pause();
      await worker.goOn();
      await worker.end();
      const expected = { ...after["adds a new state of a directory"], "a/w.md": "wolf w", "w.md": "wolf w" };
      await mustBeWhole(arena, bob, { expected, hasSummaries: true });
      await bob.close();
    },
  },
  {
    title: "delete: a search never gives a file that is out of the tree, before any worker comes",
    play: async (arena) => {
      await prepare(arena, {});
      const carl = await arena.open("carl", { hasSummaries: false, work: false });
      expect(await found(carl, "wolf")).toEqual(Object.keys(before).sort());
      const remover = await arena.holdAt({ work: "removes a file", at: "after taking it out of the tree" });
      expect(await found(carl, "wolf")).toEqual(Object.keys(after["removes a file"]).sort());
      await remover.goOn();
      await remover.end();
      await carl.close();
    },
  },
  {
    title: "orphan index: a file that another program has removed is not found",
    play: async (arena) => {
      await prepare(arena, {});
      await arena.disk.unlink(`${arena.root}/b.md`);
      const bob = await arena.open("bob", { hasSummaries: false });
      expect(await found(bob, "wolf")).toEqual(Object.keys(after["removes a file"]).sort());
      await mustBeWhole(arena, bob, { expected: after["removes a file"] });
      await bob.close();
    },
  },
  ...["after committing", "after taking it out of the tree", "after bringing it in"].map((at) => ({
    title: `cannot happen: a move leaves a copy. It stands ${at}, and no file is in both places`,
    play: async (arena: Arena) => {
      await prepare(arena, {});
      const mover = await arena.holdAt({ work: "moves a directory", at });
      const names = Object.keys(await textsIn(arena.disk, arena.root));
      const isInBoth = names.some((name) => name.startsWith("a/")) && names.some((name) => name.startsWith("c/"));
      expect({ isInBoth }).toEqual({ isInBoth: false });
      await mover.goOn();
      await mover.end();
      const bob = await arena.open("bob", { hasSummaries: false });
      await mustBeWhole(arena, bob, { expected: after["moves a directory"] });
      await bob.close();
    },
  })),
  ...Object.entries({
    "after taking the lock": before,
    "after staging a file": before,
    "after committing": before,
    "after bringing it in": after["adds a directory"],
    "after offering the lock": after["adds a directory"],
  }).map(([at, seen]) => ({
    title: `cannot happen: half of an added directory, or a lock file in the tree. An adder stands ${at}`,
    play: async (arena: Arena) => {
      await prepare(arena, {});
      const adder = await arena.holdAt({ work: "adds a directory", at });
      expect(await textsIn(arena.disk, arena.root)).toEqual(seen);
      await adder.goOn();
      await adder.end();
      const bob = await arena.open("bob", { hasSummaries: false });
      await mustBeWhole(arena, bob, { expected: after["adds a directory"] });
      await bob.close();
    },
  })),
  ...(["before", "after"] as const).map((moment) => ({
    title: `cannot happen: an archive without the clearing. ${moment} the archive each message is in one place`,
    play: async (arena: Arena) => {
      await prepare(arena, {});
      const committer = await arena.holdAt({ work: "commits a session", at: `${moment} archiving the messages` });
      const carl = await arena.open("carl", { hasSummaries: false, work: false });
      const session = await carl.session(sessionName);
      const open = (await session.messages()).map(({ content }) => content);
      const archived: string[] = [];
      for await (const archive of session.archives()) archived.push(...archive.messages.map(({ content }) => content));
      expect({ open, archived }).toEqual(
        moment === "before" ? { open: messages, archived: [] } : { open: [], archived: messages },
      );
      await committer.goOn();
      await committer.end();
      await carl.close();
    },
  })),
];
