import { describe, expect, it, vi } from "vitest";
import { AppendFile } from "../../src/durable/group-commit/append-file.ts";
import { GroupCommit } from "../../src/durable/group-commit/group-commit.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { DiskFile } from "../../src/ports/disk.ts";
import { places } from "./places.ts";

/** A commit that is held back by hand, and what it was asked for. */
function byHand(): {
  readonly groups: (readonly string[])[];
  readonly commit: (group: readonly string[]) => Promise<string[]>;
  readonly finish: (error?: Error) => void;
} {
  const groups: (readonly string[])[] = [];
  let pending: { resolve: () => void; reject: (error: Error) => void } | undefined;
  return {
    groups,
    commit: async (group) => {
      groups.push(group);
      await new Promise<void>((resolve, reject) => (pending = { resolve, reject }));
      return group.map((item) => item.toUpperCase());
    },
    finish: (error) => (error === undefined ? pending?.resolve() : pending?.reject(error)),
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("group commit", () => {
  it("gives each caller its own result, in order", async () => {
    const group = new GroupCommit<number, number>({ commit: async (items) => items.map((item) => item * 10) });
    expect(await Promise.all([1, 2, 3].map((item) => group.add(item)))).toEqual([10, 20, 30]);
  });

  it("commits once for all callers of one moment, and once more for all who came meanwhile", async () => {
    const { groups, commit, finish } = byHand();
    const group = new GroupCommit({ commit });
    const first = Promise.all(["a", "b"].map((item) => group.add(item)));
    await turn();
    const second = Promise.all(["c", "d", "e"].map((item) => group.add(item)));
    await turn();
    expect(groups).toEqual([["a", "b"]]);
    finish();
    expect(await first).toEqual(["A", "B"]);
    await turn();
    finish();
    expect(await second).toEqual(["C", "D", "E"]);
    expect(groups).toEqual([
      ["a", "b"],
      ["c", "d", "e"],
    ]);
  });

  it("never has two commits under way", async () => {
    let underWay = 0;
    const group = new GroupCommit<number, number>({
      groupSizeMax: 3,
      commit: async (items) => {
        expect(++underWay).toBe(1);
        await turn();
        underWay--;
        return items;
      },
    });
    expect(await Promise.all(Array.from({ length: 20 }, (_, item) => group.add(item)))).toHaveLength(20);
  });

  it("makes no group larger than it may be, and keeps the order over groups", async () => {
    const groups: (readonly number[])[] = [];
    const group = new GroupCommit<number, number>({
      groupSizeMax: 4,
      commit: async (items) => {
        groups.push(items);
        return items;
      },
    });
    await Promise.all(Array.from({ length: 10 }, (_, item) => group.add(item)));
    expect(groups).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
    ]);
  });

  it("fails a whole group with the error of its commit, and everything after it with CLOSED", async () => {
    const { commit, finish, groups } = byHand();
    const group = new GroupCommit({ commit });
    const failure = new Error("the disk is on fire");
    const settle = (items: string[]): Promise<unknown[]> =>
      Promise.all(items.map((item) => group.add(item).catch((error: unknown) => error)));
    const first = settle(["a", "b"]);
    await turn();
    const queued = settle(["c", "d"]);
    finish(failure);
    expect(await first).toEqual([failure, failure]);
    for (const error of await queued) expect(error).toMatchObject({ code: "CLOSED", action: "reopen", cause: failure });
    await expect(group.add("e")).rejects.toMatchObject({ code: "CLOSED", cause: failure });
    expect(groups).toEqual([["a", "b"]]);
    await group.drained();
  });

  it("fails a group also when its commit throws at once", async () => {
    const group = new GroupCommit<string, string>({
      commit: () => {
        throw new Error("at once");
      },
    });
    await expect(group.add("a")).rejects.toThrow("at once");
    await expect(group.add("b")).rejects.toMatchObject({ code: "CLOSED" });
  });

  it("refuses callers beyond the limit of its queue, and takes others again when there is room", async () => {
    const { commit, finish } = byHand();
    const group = new GroupCommit({ commit, queueSizeMax: 2 });
    const first = group.add("a");
    await turn();
    const queued = [group.add("b"), group.add("c")];
    await expect(group.add("d")).rejects.toMatchObject({ code: "TOO_LARGE", limit: 2, actual: 3 });
    finish();
    expect(await first).toBe("A");
    await turn();
    const later = group.add("e");
    finish();
    expect(await Promise.all(queued)).toEqual(["B", "C"]);
    await turn();
    finish();
    expect(await later).toBe("E");
  });

  it("is drained when all that was added before is done, and at once when there is nothing", async () => {
    const { commit, finish } = byHand();
    const group = new GroupCommit({ commit });
    await group.drained();
    const added = group.add("a");
    const drained = vi.fn();
    const draining = group.drained().then(drained);
    await turn();
    expect(drained).not.toHaveBeenCalled();
    finish();
    await draining;
    expect(await added).toBe("A");
  });

  it.each([0, -1, NaN])("refuses groups of %d", (groupSizeMax) => {
    expect(() => new GroupCommit({ groupSizeMax, commit: async () => [] })).toThrow(RangeError);
  });
});

describe.each(places)("group commit into a file on %s", (_, make) => {
  async function openCounting(): Promise<{ file: DiskFile; counts: { syncs: number; writes: number }; path: string }> {
    const { staging, directory } = await make();
    const path = `${directory}/log`;
    const inner = await staging.disk.open(path, "create");
    const counts = { syncs: 0, writes: 0 };
    const file: DiskFile = {
      read: (offset, length) => inner.read(offset, length),
      stat: () => inner.stat(),
      close: () => inner.close(),
      write: async (offset, bytes) => {
        counts.writes++;
        await inner.write(offset, bytes);
      },
      sync: async () => {
        counts.syncs++;
        await inner.sync();
      },
    };
    return { file, counts, path };
  }

  it("takes one write and one sync for a hundred callers", async () => {
    const { file, counts } = await openCounting();
    const log = new AppendFile(file, 0);
    const group = new GroupCommit<string, number>({
      commit: async (lines) => {
        let offset = await log.append(Buffer.from(lines.join("")));
        return lines.map((line) => (offset += line.length) - line.length);
      },
    });
    const lines = Array.from({ length: 100 }, (__, index) => `line ${index}\n`);
    const offsets = await Promise.all(lines.map((line) => group.add(line)));
    expect(counts).toEqual({ syncs: 1, writes: 1 });
    for (const [index, offset] of offsets.entries()) {
      const line = lines[index]!;
      expect(Buffer.from(await file.read(offset, line.length)).toString()).toBe(line);
    }
    expect(log.end).toBe(lines.join("").length);
    await log.close();
  });
});

describe("group commit into a file whose sync fails", () => {
  it("fails its whole group, never repeats the sync, and never uses that offset again", async () => {
    const [, make] = places[1]!;
    const { staging, directory } = await make();
    const inner = await staging.disk.open(`${directory}/log`, "create");
    let syncs = 0;
    const log = new AppendFile(
      {
        ...inner,
        read: (offset, length) => inner.read(offset, length),
        write: (offset, bytes) => inner.write(offset, bytes),
        stat: () => inner.stat(),
        close: () => inner.close(),
        sync: async () => {
          if (++syncs === 2) throw diskError("EIO", "sync", "log");
        },
      },
      0,
    );
    const group = new GroupCommit<string, number>({
      commit: async (lines) => {
        const offset = await log.append(Buffer.from(lines.join("")));
        return lines.map(() => offset);
      },
    });
    expect(await group.add("acknowledged\n")).toBe(0);
    const failed = await Promise.allSettled(["x\n", "y\n"].map((line) => group.add(line)));
    expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(group.add("z\n")).rejects.toMatchObject({ code: "CLOSED" });
    expect(syncs).toBe(2);
    expect(log.end).toBe("acknowledged\n".length);
  });
});
