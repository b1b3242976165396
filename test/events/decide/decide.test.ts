import { describe, expect, it, vi } from "vitest";
import { isHoldfastError } from "../../../src/errors.ts";
import { decide, memoryEvents, model, type DecideOptions, type SequencedEvent } from "../../../src/events/index.ts";
import { accessOf } from "../../../src/events/log/log-access.ts";
import { meeting, shopModel, sold, stocked, stockOf, type Shop } from "./shop.ts";

const typesIn = async (events: AsyncIterable<SequencedEvent<Shop>>): Promise<string[]> => {
  const types: string[] = [];
  for await (const { type, data } of events) types.push(`${type} ${data.amount}`);
  return types;
};

const inOrder = (numbers: readonly number[]): number[] => [...numbers].sort((one, other) => one - other);

describe("a decision", () => {
  it("gets the state of each of its models, by name, and the head of the states", async () => {
    const store = memoryEvents<Shop>();
    await store.append([stocked("a", 5), stocked("b", 7), sold("a", 2)]);
    const seen: unknown[] = [];
    await decide(store, { a: stockOf("a"), b: stockOf("b"), c: stockOf("c") }, (states, { attempt, head }) => {
      seen.push(states, attempt, head);
      return [];
    });
    expect(seen).toEqual([{ a: 3, b: 7, c: 0 }, 1, 3]);
  });

  it("makes one read for all of its models", async () => {
    const store = memoryEvents<Shop>();
    await store.append([stocked("a", 5), stocked("b", 7)]);
    const read = vi.spyOn(store, "read");
    await decide(store, { a: stockOf("a"), b: stockOf("b") }, () => []);
    expect(read).toHaveBeenCalledTimes(1);
  });

  it("does not see an event that comes during the read: that is a conflict", async () => {
    const store = memoryEvents<Shop>();
    await store.append(stocked("a", 5));
    const head = store.head.bind(store);
    const late = vi.spyOn(store, "head").mockImplementationOnce(async () => {
      const position = await head();
      await store.append(sold("a", 5));
      return position;
    });
    const stocks: number[] = [];
    const { attempts } = await decide(store, { stock: stockOf("a") }, ({ stock }) => {
      stocks.push(stock);
      return stocked("a", 1);
    });
    expect(late).toHaveBeenCalledTimes(2);
    expect(stocks).toEqual([5, 0]);
    expect(attempts).toBe(2);
  });

  it("appends one event, or a list of them in one batch", async () => {
    const store = memoryEvents<Shop>();
    const one = await decide(store, { stock: stockOf("a") }, () => stocked("a", 1));
    const two = await decide(store, { stock: stockOf("a") }, () => [stocked("a", 2), sold("a", 3)]);
    expect(one).toEqual({ result: undefined, attempts: 1, appended: { first: 1, last: 1, repeated: false } });
    expect(two.appended).toEqual({ first: 2, last: 3, repeated: false });
    expect(await typesIn(store.read())).toEqual(["Stocked 1", "Stocked 2", "Sold 3"]);
  });

  it("returns its result to the caller beside the events", async () => {
    const store = memoryEvents<Shop>();
    const decided = await decide(store, { stock: stockOf("a") }, ({ stock }) => ({
      events: [stocked("a", 1)],
      result: { before: stock },
    }));
    expect(decided.result).toEqual({ before: 0 });
    expect(decided.appended?.first).toBe(1);
  });

  it("writes nothing when it returns no events", async () => {
    const store = memoryEvents<Shop>();
    const append = vi.spyOn(store, "append");
    expect(await decide(store, { stock: stockOf("a") }, () => [])).toEqual({ result: undefined, attempts: 1 });
    const enough = await decide(store, { stock: stockOf("a") }, () => ({ events: [], result: "enough" }));
    expect(enough).toEqual({ result: "enough", attempts: 1 });
    expect(append).not.toHaveBeenCalled();
    expect(await store.head()).toBe(0);
  });

  it("that forgot to return fails with a TypeError", async () => {
    const store = memoryEvents<Shop>();
    const forgetful = (() => undefined) as unknown as () => [];
    await expect(decide(store, {}, forgetful)).rejects.toThrow(TypeError);
  });

  it("without models meets no conflict", async () => {
    const store = memoryEvents<Shop>();
    await store.append(stocked("a", 1));
    expect((await decide(store, {}, () => stocked("a", 1))).appended?.first).toBe(2);
  });

  it("by a model of all events meets a conflict with any event", async () => {
    const store = memoryEvents<Shop>();
    const count = model<number, Shop>({ query: "all", initial: 0, apply: (n) => n + 1 });
    const { attempts } = await decide(store, { count, other: stockOf("b") }, async (_, { attempt }) => {
      if (attempt === 1) await store.append(sold("z", 1));
      return stocked("a", 1);
    });
    expect(attempts).toBe(2);
  });

  it("takes a number of retries, 0 or more, and a time", async () => {
    const store = memoryEvents<Shop>();
    await expect(decide(store, {}, () => [], { timeoutMs: Number.NaN })).rejects.toThrow(RangeError);
    await expect(decide(store, {}, () => [], { retries: -1 })).rejects.toThrow(RangeError);
    await expect(decide(store, {}, () => [], { retries: Number.NaN })).rejects.toThrow(RangeError);
  });
});

describe("a refusal", () => {
  it("passes through untouched, writes nothing and is not tried again", async () => {
    const store = memoryEvents<Shop>();
    const refusal = new Error("sold out");
    const decision = vi.fn(() => {
      throw refusal;
    });
    await expect(decide(store, { stock: stockOf("a") }, decision)).rejects.toBe(refusal);
    expect(decision).toHaveBeenCalledTimes(1);
    expect(await store.head()).toBe(0);
  });

  it("of the store is no conflict: it passes through, and is not tried again", async () => {
    const store = memoryEvents<Shop>();
    const decision = vi.fn(() => ({ ...stocked("a", 1), tags: [""] }));
    const failure = await decide(store, { stock: stockOf("a") }, decision).catch((error: unknown) => error);
    expect(isHoldfastError(failure, "EVENT_INVALID")).toBe(true);
    expect(decision).toHaveBeenCalledTimes(1);
  });

  it("passes through when it is a conflict of another append inside the decision", async () => {
    const store = memoryEvents<Shop>();
    await store.append(stocked("a", 1));
    const decision = vi.fn(async () => {
      await store.append(sold("a", 1), { condition: { failIfEventsMatch: "all" } });
      return [];
    });
    const failure = await decide(store, { stock: stockOf("a") }, decision).catch((error: unknown) => error);
    expect(isHoldfastError(failure, "APPEND_CONDITION_FAILED")).toBe(true);
    expect(decision).toHaveBeenCalledTimes(1);
  });
});

describe("two deciders", () => {
  it("never sell the last piece twice: the loser decides again and refuses", async () => {
    const store = memoryEvents<Shop>();
    await store.append(stocked("a", 1));
    const bothHaveRead = meeting(2);
    const attempts: number[] = [];
    const sell = async () =>
      await decide(store, { stock: stockOf("a") }, async ({ stock }, { attempt }) => {
        attempts.push(attempt);
        await bothHaveRead();
        if (stock < 1) throw new Error("sold out");
        return sold("a", 1);
      });
    const ends = await Promise.allSettled([sell(), sell()]);
    expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(attempts).toEqual([1, 1, 2]);
    expect(await typesIn(store.read())).toEqual(["Stocked 1", "Sold 1"]);
  });

  it("both succeed when there is enough for both, and the second has counted the first", async () => {
    const store = memoryEvents<Shop>();
    await store.append(stocked("a", 2));
    const bothHaveRead = meeting(2);
    const sell = async () =>
      await decide(store, { stock: stockOf("a") }, async ({ stock }) => {
        await bothHaveRead();
        return { events: [sold("a", 1)], result: stock };
      });
    const decided = await Promise.all([sell(), sell()]);
    expect(inOrder(decided.map(({ result }) => result))).toEqual([1, 2]);
    expect(inOrder(decided.map(({ attempts }) => attempts))).toEqual([1, 2]);
  });

  it("do not meet when their models have nothing in common", async () => {
    const store = memoryEvents<Shop>();
    const bothHaveRead = meeting(2);
    const stock = async (sku: string) =>
      await decide(store, { stock: stockOf(sku) }, async () => {
        await bothHaveRead();
        return stocked(sku, 1);
      });
    const decided = await Promise.all([stock("a"), stock("b")]);
    expect(decided.map(({ attempts }) => attempts)).toEqual([1, 1]);
  });

  it("meet if only one of their models has something in common", async () => {
    const store = memoryEvents<Shop>();
    const bothHaveRead = meeting(2);
    const stock = async (...skus: string[]) =>
      await decide(store, Object.fromEntries(skus.map((sku) => [sku, stockOf(sku)])), async () => {
        await bothHaveRead();
        return skus.map((sku) => stocked(sku, 1));
      });
    const decided = await Promise.all([stock("a", "b"), stock("b", "c")]);
    expect(inOrder(decided.map(({ attempts }) => attempts))).toEqual([1, 2]);
  });
});

describe("a conflict", () => {
  /** A rival sells before each of the first attempts. */
  const decideAgainst = async (rivals: number, options?: DecideOptions) => {
    const store = memoryEvents<Shop>();
    const attempts: number[] = [];
    const decided = decide(
      store,
      { stock: stockOf("a") },
      async (_, { attempt }) => {
        attempts.push(attempt);
        if (attempt <= rivals) await store.append(sold("a", 1));
        return stocked("a", 10);
      },
      options,
    );
    return { attempts, ended: await decided.catch((error: unknown) => error), store };
  };

  it("is tried again more than five times by default", async () => {
    expect((await decideAgainst(6)).ended).toMatchObject({ attempts: 7 });
  });

  it("is tried again until the time is up", async () => {
    const startMs = performance.now();
    const { ended, attempts } = await decideAgainst(Infinity, { timeoutMs: 200 });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(200);
    expect(isHoldfastError(ended, "APPEND_CONDITION_FAILED")).toBe(true);
    expect(attempts.length).toBeGreaterThan(1);
  });

  it("is tried again `retries` times", async () => {
    const { ended, attempts } = await decideAgainst(Infinity, { retries: 2 });
    expect(isHoldfastError(ended, "APPEND_CONDITION_FAILED")).toBe(true);
    expect(attempts).toEqual([1, 2, 3]);
  });

  it.each([{ retries: 0 }, { timeoutMs: 0 }])(
    "is not tried again with %o, and tells what stood in the way",
    async (options) => {
      const { ended, attempts, store } = await decideAgainst(1, options);
      expect(attempts).toEqual([1]);
      expect(ended).toMatchObject({ code: "APPEND_CONDITION_FAILED", conflicts: [{ type: "Sold", position: 1 }] });
      expect(await store.head()).toBe(1);
    },
  );

  it("waits before each retry but the first, for a short random time", async () => {
    const store = memoryEvents<Shop>();
    const { clock, random } = accessOf(store).ports;
    const sleep = vi.spyOn(clock, "sleep");
    const fraction = vi.spyOn(random, "fraction").mockReturnValue(0.25);
    const { signal } = new AbortController();
    const rival = async () => await store.append(sold("a", 1));
    try {
      await decide(
        store,
        { stock: stockOf("a") },
        async (_, { attempt }) => {
          if (attempt <= 5) await rival();
          return stocked("a", 10);
        },
        { signal },
      );
      const waits = sleep.mock.calls.filter(([, options]) => options?.signal === signal).map(([ms]) => ms);
      expect(waits).toEqual([5, 5, 5, 5]);
    } finally {
      sleep.mockRestore();
      fraction.mockRestore();
    }
  });

  it("makes the next attempt read from the end of the first: no event is folded twice", async () => {
    const store = memoryEvents<Shop>();
    await store.append(Array.from({ length: 20 }, () => stocked("a", 1)));
    const applied: number[] = [];
    const stock = shopModel({
      query: { tags: ["sku:a"] },
      initial: 0,
      apply: (n, { position }) => {
        applied.push(position);
        return n + 1;
      },
    });
    const { result } = await decide(store, { stock }, async ({ stock }, { attempt }) => {
      if (attempt === 1) await store.append(sold("a", 1));
      return { events: [sold("a", 1)], result: stock };
    });
    expect(applied).toEqual(Array.from({ length: 21 }, (_, index) => index + 1));
    expect(result).toBe(21);
  });

  it("makes the next attempt read from the start when tags were added to older events meanwhile", async () => {
    const store = memoryEvents<Shop>();
    await store.append([stocked("b", 5), stocked("a", 1)]);
    const stocks: number[] = [];
    await decide(store, { stock: stockOf("a") }, async ({ stock }, { attempt }) => {
      stocks.push(stock);
      if (attempt === 1) {
        await store.addTags([1], ["sku:a"]);
        await store.append(sold("a", 1));
      }
      return sold("a", 1);
    });
    expect(stocks).toEqual([1, 5]);
  });
});

describe("states", () => {
  it("begin anew in each decision, although an apply changes them in place", async () => {
    const store = memoryEvents<Shop>();
    await store.append([stocked("a", 1), stocked("a", 2)]);
    const amounts = shopModel({
      query: { types: ["Stocked"] },
      initial: { amounts: [] as number[] },
      apply: (state, { data }) => {
        state.amounts.push(data.amount);
        return state;
      },
    });
    for (let time = 0; time < 2; time++) {
      const { result } = await decide(store, { amounts }, ({ amounts }) => ({ events: [], result: amounts }));
      expect(result).toEqual({ amounts: [1, 2] });
    }
    expect(amounts.initial).toEqual({ amounts: [] });
  });

  it("are folded from the events in the next attempt, too, although the decision has changed them", async () => {
    const store = memoryEvents<Shop>();
    await store.append(stocked("a", 1));
    const amounts = shopModel({
      query: { types: ["Stocked"] },
      initial: new Map<string, number[]>(),
      apply: (state, { data }) => new Map([...state, [data.sku, [...(state.get(data.sku) ?? []), data.amount]]]),
    });
    const seen: unknown[] = [];
    await decide(store, { amounts }, async ({ amounts }, { attempt }) => {
      seen.push(structuredClone(amounts));
      amounts.get("a")?.push(1000);
      amounts.set("b", []);
      if (attempt === 1) await store.append(stocked("a", 2));
      return stocked("a", 3);
    });
    expect(seen).toEqual([new Map([["a", [1]]]), new Map([["a", [1, 2]]])]);
  });

  it("that cannot be copied are folded from the start again", async () => {
    class Stock {
      #amount = 0;
      add(amount: number): this {
        this.#amount += amount;
        return this;
      }
      get amount(): number {
        return this.#amount;
      }
    }
    const store = memoryEvents<Shop>();
    await store.append(stocked("a", 1));
    const stock = shopModel({
      query: { types: ["Stocked"] },
      initial: undefined as Stock | undefined,
      apply: (state, { data }) => (state ?? new Stock()).add(data.amount),
    });
    const amounts: (number | undefined)[] = [];
    await decide(store, { stock }, async ({ stock }, { attempt }) => {
      amounts.push(stock?.amount);
      stock?.add(1000);
      if (attempt === 1) await store.append(stocked("a", 2));
      return stocked("a", 3);
    });
    expect(amounts).toEqual([1, 3]);
  });

  it("begin with a copy of `initial`, also when the caller changes its object later", async () => {
    const initial = { amounts: [] as number[] };
    const amounts = shopModel({ query: { types: ["Stocked"] }, initial, apply: (state) => state });
    initial.amounts.push(1000);
    const { result } = await decide(memoryEvents<Shop>(), { amounts }, (states) => ({
      events: [],
      result: states.amounts,
    }));
    expect(result).toEqual({ amounts: [] });
  });

  it("are never promises: an async apply fails with its model and the event", async () => {
    const store = memoryEvents<Shop>();
    await store.append([sold("b", 1), stocked("a", 5)]);
    const late = model<unknown, Shop>({ query: { types: ["Stocked"] }, initial: 0, apply: async () => 5 });
    const decided = vi.fn<() => never[]>(() => []);
    const error: unknown = await decide(store, { late }, decided).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: expect.stringMatching(/model late returned a promise at event 2\b/) });
    expect(decided).not.toHaveBeenCalled();
  });

  it("cannot begin with a value that is not data", () => {
    const definition = { query: "all" as const, apply: () => "" };
    expect(() => model({ ...definition, initial: new URL("https://example.com") as unknown as string })).toThrow(
      TypeError,
    );
    expect(() => model({ ...definition, initial: (() => "") as unknown as string })).toThrow(TypeError);
    expect(() => model({ ...definition, query: [], initial: "" })).toThrow(TypeError);
  });
});

describe("a signal", () => {
  const reason = new Error("enough");

  it("that was aborted before the call keeps the decision from running", async () => {
    const store = memoryEvents<Shop>();
    const decision = vi.fn(() => stocked("a", 1));
    const signal = AbortSignal.abort(reason);
    await expect(decide(store, { stock: stockOf("a") }, decision, { signal })).rejects.toBe(reason);
    expect(decision).not.toHaveBeenCalled();
  });

  it("ends the wait after a conflict, with its reason", async () => {
    const store = memoryEvents<Shop>();
    const controller = new AbortController();
    const decision = vi.fn(async () => {
      await store.append(sold("a", 1));
      controller.abort(reason);
      return stocked("a", 1);
    });
    const { signal } = controller;
    const decided = decide(store, { stock: stockOf("a") }, decision, { signal, retries: Infinity });
    await expect(decided).rejects.toBe(reason);
    expect(decision).toHaveBeenCalledTimes(1);
  });

  it("that aborts during the decision keeps it from being written", async () => {
    const store = memoryEvents<Shop>();
    const controller = new AbortController();
    const decided = decide(
      store,
      { stock: stockOf("a") },
      () => {
        controller.abort(reason);
        return stocked("a", 1);
      },
      { signal: controller.signal },
    );
    await expect(decided).rejects.toBe(reason);
    expect(await store.head()).toBe(0);
  });
});
