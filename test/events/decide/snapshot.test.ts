import { describe, expect, it, vi } from "vitest";
import {
  decide,
  memoryEvents,
  model,
  openEvents,
  type EventStore,
  type SubjectKeys,
} from "../../../src/events/index.ts";
import { accessOf } from "../../../src/events/log/log-access.ts";
import type { StoreAccess } from "../../../src/events/store-access.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../../src/format/record.ts";
import { makeScratch } from "../../sites/scratch.ts";
import { shopModel, sold, stocked, type Shop } from "./shop.ts";

interface Kept {
  readonly store: EventStore<Shop>;
  readonly access: StoreAccess;
  /** Folds the stock of one article, and counts the events. */
  readonly stock: (options?: {
    version?: number;
    every?: number;
    sku?: string;
  }) => Promise<{ stock: number; applied: number }>;
  /** The only file. */
  readonly path: () => Promise<string>;
}

/** Ten events of one article among ten of another. */
async function openShop(): Promise<Kept> {
  const store = memoryEvents<Shop>();
  await store.append(Array.from({ length: 10 }, () => [stocked("a", 2), stocked("b", 1)]).flat());
  return shopOn(store);
}

function shopOn(store: EventStore<Shop>): Kept {
  const access = accessOf(store) as StoreAccess;
  return {
    store,
    access,
    stock: async ({ version, every = 10, sku = "a" } = {}) => {
      let applied = 0;
      const stock = shopModel({
        query: { types: ["Sold", "Stocked"], tags: [`sku:${sku}`] },
        initial: 0,
        apply: (n, { type, data }) => {
          applied++;
          return type === "Stocked" ? n + data.amount : n - data.amount;
        },
        snapshot: { name: "stock", version, every },
      });
      const { result } = await decide(store, { stock }, ({ stock }) => ({ events: [], result: stock }));
      return { stock: result, applied };
    },
    path: async () => {
      const [name, ...more] = await filesOf(access);
      expect(more).toEqual([]);
      return `${access.directory}/snapshots/stock/${name}`;
    },
  };
}

const filesOf = async ({ ports, directory }: StoreAccess): Promise<string[]> =>
  await ports.disk.list(`${directory}/snapshots/stock`).catch(() => []);

const anyRecord: RecordKind<Record<string, unknown>> = {
  kind: "snapshot",
  decode: (value) => value as Record<string, unknown>,
};

/** Changes the snapshot, with a checksum that fits. */
async function change({ access, path }: Kept, to: (body: Record<string, unknown>) => object): Promise<void> {
  const { disk } = access.ports;
  const file = await path();
  const body = decodeRecord(anyRecord, await disk.readFile(file, 1_000_000), file);
  await disk.unlink(file);
  await disk.createFile(file, encodeRecord(anyRecord, { ...body, ...to(body) }), { sync: false });
}

describe("a snapshot", () => {
  it("lets the next decision read only newer events", async () => {
    const shop = await openShop();
    expect(await shop.stock()).toEqual({ stock: 20, applied: 10 });
    await shop.store.append([sold("a", 1), sold("b", 1)]);
    expect(await shop.stock()).toEqual({ stock: 19, applied: 1 });
  });

  it("is made again only after as many events as the model wants", async () => {
    const shop = await openShop();
    await shop.stock();
    await shop.store.append(Array.from({ length: 9 }, () => sold("a", 1)));
    expect(await shop.stock()).toEqual({ stock: 11, applied: 9 });
    expect(await shop.stock()).toEqual({ stock: 11, applied: 9 });
    await shop.store.append(sold("a", 1));
    expect(await shop.stock()).toEqual({ stock: 10, applied: 10 });
    expect(await shop.stock()).toEqual({ stock: 10, applied: 0 });
  });

  it("is not made for a short history, nor for a model that wants none", async () => {
    const shop = await openShop();
    await shop.stock({ every: 11 });
    expect(await filesOf(shop.access)).toEqual([]);
  });

  it("belongs to one query", async () => {
    const shop = await openShop();
    await shop.stock({ sku: "a" });
    expect(await shop.stock({ sku: "b" })).toEqual({ stock: 10, applied: 10 });
    expect(await filesOf(shop.access)).toHaveLength(2);
    expect(await shop.stock({ sku: "a" })).toEqual({ stock: 20, applied: 0 });
  });

  it("belongs to one version", async () => {
    const shop = await openShop();
    await shop.stock({ version: 1 });
    expect(await shop.stock({ version: 2 })).toEqual({ stock: 20, applied: 10 });
    expect(await shop.stock({ version: 1 })).toEqual({ stock: 20, applied: 0 });
  });

  it("belongs to the same query in another order", async () => {
    const shop = await openShop();
    await shop.stock();
    const reordered = shopModel({
      query: [{ tags: ["sku:a", "sku:a"], types: ["Stocked", "Sold"] }],
      initial: 0,
      apply: () => Number.NaN,
      snapshot: { name: "stock", every: 10 },
    });
    const { result } = await decide(shop.store, { reordered }, (states) => ({ events: [], result: states.reordered }));
    expect(result).toBe(20);
  });

  it("of one model does not make another one skip its events", async () => {
    const shop = await openShop();
    await shop.stock();
    await shop.store.append(sold("a", 1));
    const positions: Record<string, number[]> = { kept: [], plain: [] };
    const countOf = (name: string, snapshot?: { name: string }) =>
      shopModel({
        query: { types: ["Stocked", "Sold"], tags: ["sku:a"] },
        initial: 0,
        apply: (n, { position }) => {
          positions[name]?.push(position);
          return n + 1;
        },
        snapshot,
      });
    const models = { kept: countOf("kept", { name: "stock" }), plain: countOf("plain") };
    const { result } = await decide(shop.store, models, (states) => ({ events: [], result: states }));
    // The kept state is that of the other fold. Only another version would tell.
    expect(result).toEqual({ kept: 21, plain: 11 });
    expect(positions.kept).toEqual([21]);
    expect(positions.plain).toEqual([1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21]);
  });

  it("changes nothing for a decision that meets a conflict", async () => {
    const shop = await openShop();
    await shop.stock();
    const stock = shopModel({
      query: { types: ["Sold", "Stocked"], tags: ["sku:a"] },
      initial: 0,
      apply: (n, { type, data }) => (type === "Stocked" ? n + data.amount : n - data.amount),
      snapshot: { name: "stock", every: 1 },
    });
    const stocks: number[] = [];
    await decide(shop.store, { stock }, async ({ stock }, { attempt }) => {
      stocks.push(stock);
      if (attempt === 1) await shop.store.append(sold("a", 5));
      return sold("a", 1);
    });
    expect(stocks).toEqual([20, 15]);
    expect(await shop.stock()).toEqual({ stock: 14, applied: 1 });
  });
});

describe("a snapshot is kept once", () => {
  it("in a decision that meets a conflict: only as many events as the model wants make the next one", async () => {
    const shop = await openShop();
    const stock = shopModel({
      query: { types: ["Sold", "Stocked"], tags: ["sku:a"] },
      initial: 0,
      apply: (n, { type, data }) => (type === "Stocked" ? n + data.amount : n - data.amount),
      snapshot: { name: "stock", every: 10 },
    });
    await decide(shop.store, { stock }, async (_, { attempt }) => {
      if (attempt === 1) await shop.store.append(sold("a", 1));
      return sold("a", 1);
    });
    expect(await shop.stock()).toEqual({ stock: 18, applied: 2 });
  });
});

describe("a snapshot is ignored", () => {
  const ignored = { stock: 20, applied: 10 };

  it("when it is torn, at any byte", async () => {
    const shop = await openShop();
    await shop.stock();
    const { disk } = shop.access.ports;
    const file = await shop.path();
    const bytes = await disk.readFile(file, 1_000_000);
    for (let length = 0; length < bytes.length; length += 7) {
      await disk.unlink(file);
      await disk.createFile(file, bytes.subarray(0, length), { sync: false });
      expect(await shop.stock({ every: 10 })).toEqual(ignored);
    }
  });

  it("when it is foreign: another record, no record, or a directory", async () => {
    const shop = await openShop();
    await shop.stock();
    const { disk } = shop.access.ports;
    const file = await shop.path();
    for (const text of ["{}", "hello", encodeRecord({ kind: "gate", decode: (value) => value }, { id: "x" })]) {
      await disk.unlink(file);
      await disk.createFile(file, Buffer.from(text), { sync: false });
      expect(await shop.stock()).toEqual(ignored);
    }
    await disk.unlink(file);
    await disk.mkdir(file);
    expect(await shop.stock()).toEqual(ignored);
  });

  it("when it was renamed from another query", async () => {
    const shop = await openShop();
    await shop.stock({ sku: "a" });
    const file = await shop.path();
    await shop.stock({ sku: "b" });
    const { disk } = shop.access.ports;
    const other = (await filesOf(shop.access)).find((name) => !file.endsWith(name));
    await disk.rename(`${shop.access.directory}/snapshots/stock/${other}`, file);
    expect(await shop.stock({ sku: "a" })).toEqual(ignored);
  });

  it.each([
    ["another line had its position", () => ({ checksum: "deadbeef", state: 1 })],
    ["it is of a position that this log has not reached", () => ({ position: 1_000, state: 1 })],
    ["it is of a position that this log does not have, with a checksum", () => ({ position: 21, state: 1 })],
    ["its position is no number", () => ({ position: "20", state: 1 })],
    ["it has no state", () => ({ state: undefined })],
    ["tags were added that it does not know", () => ({ tagChecksum: "deadbeef", state: 1 })],
  ])("when %s", async (_, to) => {
    const shop = await openShop();
    await shop.stock();
    await change(shop, to);
    expect(await shop.stock()).toEqual(ignored);
  });

  it("when another decision kept it after this one took its head: it has events that this one may not know", async () => {
    const shop = await openShop();
    const head = shop.store.head.bind(shop.store);
    const late = vi.spyOn(shop.store, "head").mockImplementationOnce(async () => {
      const position = await head();
      await shop.store.append(Array.from({ length: 10 }, () => sold("a", 1)));
      expect(await shop.stock()).toEqual({ stock: 10, applied: 20 });
      return position;
    });
    expect(await shop.stock()).toEqual(ignored);
    late.mockRestore();
  });

  it("when tags were added to events that were there before", async () => {
    const shop = await openShop();
    await shop.stock();
    await shop.store.addTags([2], ["sku:a"]);
    expect(await shop.stock()).toEqual({ stock: 21, applied: 11 });
    expect(await shop.stock()).toEqual({ stock: 21, applied: 0 });
  });

  it("and not made, when tags were added while the events were read: some were read before and some after", async () => {
    const shop = await openShop();
    const read = shop.store.read.bind(shop.store);
    const slow = vi.spyOn(shop.store, "read").mockImplementationOnce(async function* (...args) {
      yield* read(...args);
      await shop.store.addTags([2], ["sku:a"]);
    } as typeof shop.store.read);
    expect(await shop.stock()).toEqual(ignored);
    slow.mockRestore();
    expect(await filesOf(shop.access)).toEqual([]);
    expect(await shop.stock()).toEqual({ stock: 21, applied: 11 });
  });

  it("and not made, when the log has subjects that can be forgotten: it would outlive their keys", async () => {
    const directory = makeScratch();
    const open = async (keys?: SubjectKeys) => shopOn(await openEvents<Shop>(directory, { keys }));
    const plain = await open();
    await plain.store.append(Array.from({ length: 10 }, () => [stocked("a", 2), stocked("b", 1)]).flat());
    await plain.stock({ sku: "a" });
    await plain.store.close();
    const forgetful = await open({
      find: async () => undefined,
      create: async () => new Uint8Array(32),
      forget: async () => undefined,
    });
    expect(await forgetful.stock({ sku: "a" })).toEqual(ignored);
    expect(await forgetful.stock({ sku: "b" })).toEqual({ stock: 10, applied: 10 });
    expect(await filesOf(forgetful.access)).toHaveLength(1);
    await forgetful.store.close();
  });
});

describe("a snapshot that cannot be kept", () => {
  it("does not fail the decision", async () => {
    const shop = await openShop();
    const { disk } = shop.access.ports;
    await disk.createFile(`${shop.access.directory}/snapshots`, Buffer.from("in the way"), { sync: false });
    expect(await shop.stock()).toEqual({ stock: 20, applied: 10 });
    expect(await shop.stock()).toEqual({ stock: 20, applied: 10 });
  });

  it("is not kept: a state that JSON would change", async () => {
    const shop = await openShop();
    const latest = shopModel({
      query: { types: ["Stocked"] },
      initial: { at: undefined as Date | undefined, count: 0 } as { at?: Date; count: number },
      apply: (state) => ({ at: new Date(0), count: state.count + 1 }),
    });
    const kept = model<{ at?: Date; count: number }, Shop>({
      query: { types: ["Stocked"] },
      initial: { count: 0 },
      apply: (state) => ({ at: new Date(0), count: state.count + 1 }),
      snapshot: { name: "stock", every: 1 },
    });
    for (let time = 0; time < 2; time++) {
      const { result } = await decide(shop.store, { latest, kept }, (states) => ({ events: [], result: states }));
      expect(result).toEqual({ latest: { at: new Date(0), count: 20 }, kept: { at: new Date(0), count: 20 } });
    }
    expect(await filesOf(shop.access)).toEqual([]);
  });

  it("is refused when the model is made: an initial state that JSON would change, a bad name, a bad number", () => {
    const define = (initial: unknown, snapshot: { name: string; version?: number; every?: number }) => () =>
      model<unknown>({ query: "all", initial, apply: (state) => state, snapshot });
    expect(define(new Map(), { name: "stock" })).toThrow(TypeError);
    expect(define(undefined, { name: "stock" })).toThrow(TypeError);
    expect(define(0, { name: "" })).toThrow(/cannot be used/);
    expect(define(0, { name: "stock", version: 1.5 })).toThrow(RangeError);
    expect(define(0, { name: "stock", every: 0 })).toThrow(RangeError);
    expect(define({ list: [1, null, "a"] }, { name: "stock" })).not.toThrow();
  });
});
