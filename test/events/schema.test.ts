import { describe, expect, it } from "vitest";
import { isHoldfastError } from "../../src/errors.ts";
import { plainCodec } from "../../src/events/model/codec.ts";
import { createCodec } from "../../src/events/erasure/erasure-codec.ts";
import type { EventSchemas, NewEvent, StandardSchema } from "../../src/events/index.ts";
import { allOf, CodecWorld, kinds } from "./codec-world.ts";

type Priced = NewEvent<"Priced", { sku: string; cents: number; currency: string }>;
type Noted = NewEvent<"Noted">;

/** A schema as a validator library makes one. */
function schemaOf(validate: (value: unknown) => unknown): StandardSchema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}

const priceSchema = schemaOf((value) => {
  const { sku, cents } = value as Record<string, unknown>;
  const issues = [
    ...(typeof sku === "string" ? [] : [{ message: "is a text", path: ["sku"] }]),
    ...(typeof cents === "number" ? [] : [{ message: "is a number", path: [{ key: "amounts" }, 0, { key: "cents" }] }]),
  ];
  return issues.length > 0 ? { issues } : { value: { currency: "EUR", ...(value as object) } };
});

const v1: EventSchemas<NewEvent<"Priced", { item: string; euros: number }>> = { Priced: {} };
const v2: EventSchemas<NewEvent<"Priced", { sku: string; euros: number }>> = {
  Priced: { version: 2, upcast: (data) => ({ sku: (data as { item: string }).item, euros: 0 }) },
};
const v3: EventSchemas<Priced> = {
  Priced: {
    version: 3,
    // Changes its argument, as a careless upcast does.
    upcast: (data, from) => {
      const old = data as { item?: string; sku?: string; euros?: number; cents?: number; currency?: string };
      if (from === 1) old.sku = old.item ?? "";
      delete old.item;
      old.cents = (old.euros ?? 0) * 100;
      delete old.euros;
      old.currency = `EUR (from ${from})`;
      return old as Priced["data"];
    },
  },
};

describe.each(kinds)("schemas, %s", (kind) => {
  it("refuse an event with every issue and its path, and store nothing of the whole append", async () => {
    const world = await CodecWorld.make(kind);
    const store = await world.open({ schemas: { Priced: { schema: priceSchema } } });
    const refused = await store
      .append([
        { type: "Priced", data: { sku: "a", cents: 1 } },
        { type: "Priced", data: { sku: 7 } },
      ])
      .catch((error: unknown) => error);
    if (!isHoldfastError(refused, "EVENT_INVALID")) throw refused;
    expect(refused.type).toBe("Priced");
    expect(refused.issues).toEqual(["data.sku: is a text", "data.amounts.0.cents: is a number"]);
    expect(refused.message).toContain("data.sku: is a text");
    expect(await store.head()).toBe(0);
  });

  it("store the value that the validator returns, also by a promise", async () => {
    const world = await CodecWorld.make(kind);
    for (const validate of [priceSchema, schemaOf(async (value) => priceSchema["~standard"].validate(value))]) {
      const store = await world.open({ schemas: { Priced: { schema: validate } } });
      await store.append({ type: "Priced", data: { sku: "a", cents: 1 }, id: "1" });
      expect((await store.last())?.data).toEqual({ sku: "a", cents: 1, currency: "EUR" });
      // A repeated append is compared with the stored value.
      expect((await store.append({ type: "Priced", data: { sku: "a", cents: 1 }, id: "1" })).repeated).toBe(true);
    }
  });

  it("let every type without an entry pass, whatever its name", async () => {
    const world = await CodecWorld.make(kind);
    const store = await world.open({ schemas: { Priced: { schema: priceSchema, version: 4 } } });
    await store.append([
      { type: "constructor", data: 1 },
      { type: "__proto__", data: 2 },
      { type: "Noted", data: 3, metadata: { by: "ada" } },
    ]);
    expect((await allOf(store.read())).map(({ data, metadata }) => [data, metadata])).toEqual([
      [1, {}],
      [2, {}],
      [3, { by: "ada" }],
    ]);
  });

  it("read a log of older programs, each event lifted from the version that it was written by", async () => {
    const world = await CodecWorld.make(kind);
    const first = await world.open({ schemas: v1 });
    await first.append([
      { type: "Priced", data: { item: "pen", euros: 2 }, tags: ["sku:pen"] },
      { type: "Priced", data: { item: "ink", euros: 5 }, tags: ["sku:ink"] },
    ]);
    await first.close();
    const second = await world.open({ schemas: v2 });
    await second.append({ type: "Priced", data: { sku: "cap", euros: 1 }, metadata: { by: "ada" } });
    await second.close();
    const third = await world.open({ schemas: v3 });
    await third.append({ type: "Priced", data: { sku: "box", cents: 9, currency: "CHF" } });
    const expected = [
      { sku: "pen", cents: 200, currency: "EUR (from 1)" },
      { sku: "ink", cents: 500, currency: "EUR (from 1)" },
      { sku: "cap", cents: 100, currency: "EUR (from 2)" },
      { sku: "box", cents: 9, currency: "CHF" },
    ];
    expect((await allOf(third.read())).map(({ data }) => data)).toEqual(expected);
    expect((await allOf(third.read("all", { backwards: true }))).map(({ data }) => data)).toEqual(
      expected.toReversed(),
    );
    // The same line twice: an upcast that changes its argument must not change the next read.
    for (const _ of [1, 2])
      expect((await allOf(third.read({ tags: ["sku:ink"] }))).map(({ data }) => data)).toEqual([expected[1]]);
    expect((await allOf(third.read("all", { after: 2, limit: 1 })))[0]?.metadata).toEqual({ by: "ada" });
    const conflict = await third
      .append(
        { type: "Priced", data: { sku: "x", cents: 1, currency: "EUR" } },
        { condition: { failIfEventsMatch: { tags: ["sku:pen"] } } },
      )
      .catch((error: unknown) => error);
    if (!isHoldfastError(conflict, "APPEND_CONDITION_FAILED")) throw conflict;
    expect(conflict.conflicts[0]?.data).toEqual(expected[0]);
  });

  it("let programs of two versions run side by side while the newer one writes the older version", async () => {
    const world = await CodecWorld.make(kind);
    const old = await world.open({ schemas: v2 });
    const upcast = v3.Priced?.upcast;
    const both: EventSchemas<Priced> = {
      Priced: {
        schema: priceSchema,
        version: 3,
        ...(upcast && { upcast }),
        writes: { version: 2, downcast: ({ sku, cents }) => ({ sku, euros: cents / 100 }) },
      },
    };
    const next = await world.open({ schemas: both });
    await old.append({ type: "Priced", data: { sku: "a", euros: 1 } });
    await next.append({ type: "Priced", data: { sku: "b", cents: 200, currency: "EUR" } });
    expect((await allOf(old.read())).map(({ data }) => data)).toEqual([
      { sku: "a", euros: 1 },
      { sku: "b", euros: 2 },
    ]);
    expect((await allOf(next.read())).map(({ data }) => data)).toMatchObject([
      { sku: "a", cents: 100 },
      { sku: "b", cents: 200 },
    ]);
    // All programs know version 3 by now: it is written from here on.
    const last = await world.open({ schemas: v3 });
    await last.append({ type: "Priced", data: { sku: "c", cents: 300, currency: "EUR" } });
    expect((await allOf(next.read())).map(({ data }) => data.cents)).toEqual([100, 200, 300]);
    await expect(allOf(old.read())).rejects.toMatchObject({ code: "EVENT_INVALID" });
    const broken: EventSchemas<Priced> = {
      Priced: {
        ...both.Priced,
        writes: {
          version: 2,
          downcast: () => {
            throw new Error("no euros");
          },
        },
      },
    };
    const failing = await world.open({ schemas: broken });
    await expect(failing.append({ type: "Priced", data: { sku: "d", cents: 1, currency: "" } })).rejects.toThrow(
      /no euros/,
    );
    expect(await failing.head()).toBe(3);
  });

  it("stop an older program at an event of a newer version, and a newer one goes on with that very event", async () => {
    const world = await CodecWorld.make(kind);
    const [old, next] = [await world.open({ schemas: v2 }), await world.open({ schemas: v3 })];
    await old.append([1, 2].map((euros) => ({ type: "Priced", data: { sku: "a", euros } })));
    const handled: unknown[] = [];
    const behind = old.consume("prices", "all", async ([event]) => void handled.push(["old", event?.position]));
    await behind.waitUntilProcessed(2);
    await next.append({ type: "Priced", data: { sku: "b", cents: 300, currency: "EUR" } });
    await expect(behind.done).rejects.toMatchObject({
      code: "EVENT_INVALID",
      type: "Priced",
      issues: [expect.stringMatching(/version 3, and this program knows only 2: .* upgrade this one/)],
    });
    // Also when it is started again: it neither skips the event nor loses its place.
    const again = old.consume("prices", "all", async ([event]) => void handled.push(["old", event?.position]));
    await expect(again.done).rejects.toMatchObject({ code: "EVENT_INVALID" });
    expect(await again.position()).toBe(2);
    await old.append({ type: "Priced", data: { sku: "a", euros: 4 } });
    const ahead = next.consume("prices", "all", async ([event]) => void handled.push(["new", event?.position]));
    await ahead.waitUntilProcessed(4);
    expect(handled).toEqual([
      ["old", 1],
      ["old", 2],
      ["new", 3],
      ["new", 4],
    ]);
    await ahead.stop();
  });

  it("store only versions beyond the first", async () => {
    const world = await CodecWorld.make(kind);
    const first = await world.open({ schemas: v1 });
    await first.append({ type: "Priced", data: { item: "pen", euros: 2 } });
    const text = async (): Promise<string> => [...(await world.files(`${world.directory}/segments`)).values()].join("");
    expect(await text()).not.toContain('"version"');
    const third = await world.open({ schemas: v3 });
    await third.append({ type: "Priced", data: { sku: "pen", cents: 2, currency: "EUR" } });
    expect(await text()).toContain('"version":3');
  });

  it("name the event that cannot be read and why: a newer program wrote it, no upcast, or one that fails", async () => {
    const world = await CodecWorld.make(kind);
    const third = await world.open({ schemas: v3 });
    await third.append({ type: "Priced", data: { sku: "box", cents: 9, currency: "CHF" }, id: "newer" });
    const old = await world.open({ schemas: v2 });
    const tell = async (reading: Promise<unknown>): Promise<string> => {
      const error = await reading.catch((error: unknown) => error);
      if (!isHoldfastError(error, "EVENT_INVALID")) throw error;
      expect(error.type).toBe("Priced");
      return error.message;
    };
    expect(await tell(allOf(old.read()))).toMatch(
      /event newer of type "Priced" cannot be read.*version 3.*knows only 2/,
    );
    const first = await world.open({ schemas: v1 });
    await first.append({ type: "Priced", data: { item: "pen", euros: 2 }, id: "older" });
    const none = await world.open({ schemas: { Priced: { version: 3 } } });
    expect(await tell(none.last())).toMatch(/event older .*version 1.*no upcast to version 3/);
    const upcast = (): never => {
      throw new Error("no idea");
    };
    const failing = await world.open<NewEvent<"Priced">>({ schemas: { Priced: { version: 3, upcast } } });
    expect(await tell(failing.last())).toMatch(/event older .*upcast from version 1 to 3 failed: no idea/);
  });

  it("lose no version when a program without them copies the log", async () => {
    const world = await CodecWorld.make(kind);
    const third = await world.open({ schemas: v3 });
    await third.append({ type: "Priced", data: { sku: "box", cents: 9, currency: "CHF" }, tags: ["a"], id: "1" });
    const copied = JSON.parse(JSON.stringify(await allOf((await world.open()).read()))) as NewEvent[];
    const other = await CodecWorld.make(kind);
    await (await other.open()).append(copied);
    const [event] = await allOf((await other.open({ schemas: v3 })).read());
    expect(event).toMatchObject({ data: { sku: "box", cents: 9, currency: "CHF" }, tags: ["a"], id: "1" });
    expect(event).not.toHaveProperty("version");
  });
});

describe("schemas", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("boom");
      },
      /its schema failed: boom/,
    ],
    [
      "rejects",
      async () => {
        throw new Error("boom");
      },
      /its schema failed: boom/,
    ],
    ["answers nothing", () => undefined, /its schema failed/],
    ["answers neither", () => ({}), /neither a value nor issues/],
    ["refuses without a word", () => ({ issues: [] }), /without a reason/],
    ["gives what is no JSON", () => ({ value: 1n }), /not JSON/],
  ])("refuse the event when a validator %s", async (_, validate, message) => {
    const world = await CodecWorld.make("memory");
    const store = await world.open<Noted>({ schemas: { Noted: { schema: schemaOf(validate) } } });
    await expect(store.append({ type: "Noted", data: 1 })).rejects.toMatchObject({
      code: "EVENT_INVALID",
      message: expect.stringMatching(message),
    });
    expect(await store.head()).toBe(0);
  });

  it("are checked when the store is opened", () => {
    for (const version of [0, 1.5, -1, Number.NaN])
      expect(() => createCodec({ schemas: { Noted: { version } } })).toThrow(RangeError);
    const wrong = [{ schema: {} }, { schema: { "~standard": {} } }, { upcast: "x" }];
    for (const entry of wrong) expect(() => createCodec({ schemas: { Noted: entry as never } })).toThrow(TypeError);
  });

  it("cost no promise at a read", async () => {
    expect(createCodec({})).toBe(plainCodec);
    const codec = createCodec<Priced>({ schemas: v3 });
    const bodies = [{ data: { item: "a", euros: 1 } }, { data: {}, version: 3 }];
    for (const body of bodies) expect(codec.decode({ type: "Priced", id: "1" }, body)).not.toBeInstanceOf(Promise);
    const encoded = codec.encode({ type: "Priced", data: { sku: "a", cents: 1, currency: "EUR" } }, "1");
    expect(encoded).not.toBeInstanceOf(Promise);
  });
});
