import { mkdir, stat, symlink } from "node:fs/promises";
import { inspect } from "node:util";
import * as fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { isHoldfastError } from "../../src/errors.ts";
import type { StoredBody } from "../../src/events/model/codec.ts";
import { createCodec } from "../../src/events/erasure/erasure-codec.ts";
import {
  hashedTag,
  isErased,
  memoryEvents,
  memorySubjectKeys,
  openSubjectKeys,
  personal,
  type Erased,
  type NewEvent,
  type Personal,
  type StandardSchema,
  type SubjectKeys,
} from "../../src/events/index.ts";
import { openProjection } from "../../src/events/projection/projection.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { nodeRandom } from "../../src/ports/node/random.ts";
import { allOf, CodecWorld, kinds } from "./codec-world.ts";

type Registered = NewEvent<"Registered", { customer: string; name: Personal<string> }>;
type Forgotten = NewEvent<"Forgotten", { customer: string }>;

const ada = "Ada Countess of Lovelace";
const grace = "Grace Brewster Hopper";

function registered(customer: string, name: string, id?: string): Registered {
  return { type: "Registered", data: { customer, name: personal(customer, name) }, tags: [customer], id };
}

async function namesIn(source: AsyncIterable<{ data: unknown }>): Promise<unknown[]> {
  return (await allOf(source)).map(({ data }) => (data as { name: unknown }).name);
}

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error("It was not refused."),
    (error: unknown) => error,
  );
  if (!isHoldfastError(error, "EVENT_INVALID")) throw error;
  return error.message;
}

describe.each(kinds)("personal data, %s", (kind) => {
  it("comes back in clear while its key is there, anywhere in data and metadata", async () => {
    const world = await CodecWorld.make(kind);
    const store = await world.open({ keys: await world.openKeys() });
    const marked = (
      mark: <T extends string | number | object | null>(value: T) => unknown,
    ): Omit<NewEvent, "type"> => ({
      data: {
        plain: "x",
        deep: [{ name: mark(ada) }, mark({ street: "St James", numbers: [1, 2] })],
        none: mark(null),
      },
      metadata: { user: mark(grace), trace: 7 },
    });
    await store.append({ type: "Registered", ...marked((value) => personal("customer:1", value)) });
    await store.append({ type: "Registered", data: personal("customer:1", ada) });
    const [first, second] = await allOf((await world.open({ keys: await world.openKeys() })).read());
    expect(first).toMatchObject(marked((value) => value));
    expect(second?.data).toBe(ada);
  });

  it("is never in clear in any file, and after forget no process can read it in any way", async () => {
    const world = await CodecWorld.make(kind);
    const keys = await world.openKeys();
    const store = await world.open<Registered>({ keys });
    await store.append([registered("customer:1", ada), registered("customer:2", grace)]);
    await store.append(registered("customer:1", `${ada} again`));
    const other = await world.open<Registered>({ keys: await world.openKeys() });
    expect(await namesIn(other.read())).toEqual([ada, grace, `${ada} again`]);
    const key = Buffer.from((await keys.find("customer:1")) ?? []).toString("base64");
    expect([...(await world.files()).values()].join("")).toContain(key);

    await keys.forget("customer:1");

    const gone: Erased = { $erased: true, subject: "customer:1" };
    for (const reader of [store, other, await world.open<Registered>({ keys: await world.openKeys() })]) {
      expect(await namesIn(reader.read())).toEqual([gone, grace, gone]);
      expect(await namesIn(reader.read({ tags: ["customer:1"] }, { backwards: true }))).toEqual([gone, gone]);
      expect(isErased((await reader.last())?.data.name)).toBe(true);
      for await (const { data } of reader.subscribe()) {
        expect(data.name).toEqual(gone);
        break;
      }
      const conflict = await reader
        .append(registered("customer:3", "Charles"), { condition: { failIfEventsMatch: { tags: ["customer:1"] } } })
        .catch((error: unknown) => error);
      if (!isHoldfastError(conflict, "APPEND_CONDITION_FAILED")) throw conflict;
      expect(inspect(conflict, { depth: 9 })).not.toContain("Lovelace");
    }
    const secrets = ["Lovelace", "Hopper", key];
    const telling = [...(await world.files())].filter(([, content]) => secrets.some((each) => content.includes(each)));
    expect(telling.map(([path]) => path)).toEqual([]);
    expect((await store.verify()).ok).toBe(true);
  });

  it("cannot be read by a program without keys, which can copy it without loss", async () => {
    const world = await CodecWorld.make(kind);
    const keys = await world.openKeys();
    const store = await world.open<Registered>({ keys });
    await store.append(registered("customer:1", ada));
    const exported = JSON.stringify(await allOf((await world.open()).read()));
    expect(exported).toContain('"sealed":true');
    expect(exported).not.toContain("Lovelace");
    const other = await CodecWorld.make(kind);
    await (await other.open()).append(JSON.parse(exported) as NewEvent[]);
    expect(await namesIn((await other.open({ keys })).read())).toEqual([ada]);
  });

  it("lets an append be repeated under its id, and refuses one with another value", async () => {
    const world = await CodecWorld.make(kind);
    const store = await world.open<Registered>({ keys: await world.openKeys() });
    const first = await store.append(registered("customer:1", ada, "1"));
    const again = await world.open<Registered>({ keys: await world.openKeys() });
    expect(await again.append(registered("customer:1", ada, "1"))).toEqual({ ...first, repeated: true });
    await expect(again.append(registered("customer:1", grace, "1"))).rejects.toMatchObject({ code: "EVENT_ID_REUSED" });
    await expect(again.append(registered("customer:2", ada, "1"))).rejects.toMatchObject({ code: "EVENT_ID_REUSED" });
  });

  it("is refused for a subject that was forgotten, in every process and for good", async () => {
    const world = await CodecWorld.make(kind);
    const keys = await world.openKeys();
    const store = await world.open<Registered>({ keys });
    await store.append(registered("customer:1", ada));
    await keys.forget("customer:1");
    await keys.forget("customer:1");
    await keys.forget("never-seen");
    await refusalOf(store.append(registered("customer:1", ada)));
    for (const each of [keys, await world.openKeys()])
      for (const subject of ["customer:1", "never-seen"]) {
        const writer = await world.open<Registered>({ keys: each });
        expect(await refusalOf(writer.append(registered(subject, ada)))).toMatch(
          /"Registered" cannot be appended.*was forgotten.*new subject/,
        );
        expect(await each.find(subject)).toBeUndefined();
      }
    expect(await store.head()).toBe(1);
  });

  it("leaves a read model when an event says so", async () => {
    const world = await CodecWorld.make(kind);
    const keys = await world.openKeys();
    const store = await world.open<Registered | Forgotten>({ keys });
    const customers = await openProjection<{ name: string }, Registered | Forgotten>(store, {
      name: "customers",
      query: { types: ["Registered", "Forgotten"] },
      key: ({ data }) => data.customer,
      apply: (_state, event) => {
        if (event.type === "Forgotten" || isErased(event.data.name)) return undefined;
        return { name: event.data.name };
      },
    });
    const running = customers.run();
    await customers.waitUntilProcessed((await store.append([registered("c1", ada), registered("c2", grace)])).last);
    // Clear text in a read model is for the user to remove.
    expect([...(await world.files()).values()].join("")).toContain("Lovelace");
    const { last } = await store.append({ type: "Forgotten", data: { customer: "c1" } });
    await keys.forget("c1");
    await customers.waitUntilProcessed(last);
    await running.stop();
    expect(await customers.get("c1")).toBeUndefined();
    expect(await customers.get("c2")).toEqual({ name: grace });
    await customers[Symbol.asyncDispose]();
    const without = [...(await world.files())].filter(([, content]) => content.includes("Lovelace"));
    expect(without.map(([path]) => path)).toEqual([]);
  });

  it("is validated and upcast in clear, and an upcast gets Erased for an erased value", async () => {
    const world = await CodecWorld.make(kind);
    const keys = await world.openKeys();
    const seen: unknown[] = [];
    const schema: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => {
          const { name } = value as { name: unknown };
          seen.push(name);
          return typeof name === "string" ? { value: { name: name.trim() } } : { issues: [{ message: "no" }] };
        },
      },
    };
    const first = await world.open({ keys, schemas: { Named: { schema } } });
    await first.append({ type: "Named", data: { name: personal("c1", ` ${ada} `) } });
    await first.append({ type: "Named", data: { name: personal("c2", grace) } });
    expect(seen).toEqual([` ${ada} `, grace]);
    await refusalOf(first.append({ type: "Named", data: { name: personal("c1", 7) } }));
    await keys.forget("c2");
    const upcast = (data: unknown): unknown => ({ full: (data as { name: unknown }).name });
    const second = await world.open<NewEvent<"Named">>({ keys, schemas: { Named: { version: 2, upcast } } });
    expect((await allOf(second.read())).map(({ data }) => data)).toEqual([
      { full: ada },
      { full: { $erased: true, subject: "c2" } },
    ]);
    expect([...(await world.files()).values()].join("")).not.toContain("Lovelace");
  });

  it("is refused when a schema has moved it to a place where it would be stored in clear", async () => {
    const world = await CodecWorld.make(kind);
    const schema: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => ({ value: { renamed: (value as { name: unknown }).name } }),
      },
    };
    const store = await world.open({ keys: await world.openKeys(), schemas: { Named: { schema } } });
    expect(await refusalOf(store.append({ type: "Named", data: { name: personal("c1", ada) } }))).toMatch(
      /data\.name is missing after validation/,
    );
    expect(await store.head()).toBe(0);
  });

  it("is refused when a schema has reordered a list around it, so that another value stands in its place", async () => {
    // Marks were once only paths: a schema that sorts made ["Ada", "x"] of ["x", Ada]. The "x" was
    // sealed, and Ada was stored in clear.
    const world = await CodecWorld.make(kind);
    const schema: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => {
          const { names } = value as { names: unknown[] };
          const sorted = names.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
          return { value: { names: sorted } };
        },
      },
    };
    const store = await world.open({ keys: await world.openKeys(), schemas: { Listed: { schema } } });
    const reordered = [
      ["x", personal("c1", ada)],
      // Each would be sealed with the key of the other, and forgetting Grace would erase Ada.
      [personal("c2", grace), personal("c1", ada)],
      [
        { number: 2, name: personal("c2", grace) },
        { number: 1, name: personal("c1", ada) },
      ],
    ];
    for (const names of reordered)
      expect(await refusalOf(store.append({ type: "Listed", data: { names } }))).toMatch(
        /data\.names\.1(\.name)? is missing after validation/,
      );
    expect(await store.head()).toBe(0);
    await store.append({ type: "Listed", data: { names: [personal("c1", ada), "x"] } });
    expect((await allOf(store.read())).map(({ data }) => data)).toEqual([{ names: [ada, "x"] }]);
    expect([...(await world.files()).values()].join("")).not.toContain("Lovelace");
  });

  it("is refused when a schema has changed it inside a list, and not when the list was only copied", async () => {
    const world = await CodecWorld.make(kind);
    const schema: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => ({
          value: (value as { first: string; last: string }[]).map(({ first, last }) => ({ last: last.trim(), first })),
        }),
      },
    };
    const store = await world.open({ keys: await world.openKeys(), schemas: { Listed: { schema } } });
    const people = (last: string): unknown => [personal("c1", { first: "Ada", last })];
    expect(await refusalOf(store.append({ type: "Listed", data: people(" Lovelace") }))).toMatch(/inside a list/);
    await store.append({ type: "Listed", data: people("Lovelace") });
    expect((await store.last())?.data).toEqual([{ first: "Ada", last: "Lovelace" }]);
  });

  it("does not change data that only looks like it", async () => {
    const world = await CodecWorld.make(kind);
    const store = await world.open({ keys: await world.openKeys() });
    await store.append({ type: "Noted", data: personal("c1", ada) });
    const sealed = (await (await world.open()).last())?.data;
    expect(sealed).toHaveProperty("$personal.subject", "c1");
    // Data that looks like sealed values, also a copy of a stored one, with and without personal
    // data beside it.
    const strange = [
      { $personal: 1 },
      { $personal: { subject: "c1" } },
      sealed,
      { $$personal: { $personal: [] }, $$$personal: null },
      { $erased: false },
    ];
    await store.append({ type: "Noted", data: { strange } });
    await store.append({
      type: "Noted",
      data: { strange, $personal: { name: personal("c1", grace) } },
      metadata: { $personal: 2 },
    });
    const [, plain, mixed] = await allOf(store.read());
    expect(plain?.data).toEqual({ strange });
    expect(mixed?.data).toEqual({ strange, $personal: { name: grace } });
    expect(mixed?.metadata).toEqual({ $personal: 2 });
  });

  it("is erased when its key was lost, and data under the next key is not", async () => {
    const world = await CodecWorld.make(kind);
    const store = await world.open<Registered>({ keys: await world.openKeys() });
    await store.append(registered("customer:1", ada));
    const next = await world.open<Registered>({ keys: await world.openKeys(`${world.root}/other-keys`) });
    await next.append(registered("customer:1", grace));
    expect(await namesIn(next.read())).toEqual([{ $erased: true, subject: "customer:1" }, grace]);
  });
});

describe("personal()", () => {
  it("does not show its value: not as JSON, not printed, not in a store without keys", async () => {
    const value = personal("customer:1", ada);
    expect(() => JSON.stringify({ value })).toThrow("opened with `keys`");
    expect(inspect({ value }, { depth: 9, showHidden: true })).not.toContain("Lovelace");
    expect(isErased(value)).toBe(false);
    await using store = memoryEvents<Registered>();
    expect(await refusalOf(store.append(registered("customer:1", ada)))).toContain("opened with `keys`");
    expect(await refusalOf(store.append({ ...registered("c", ada), metadata: { by: value } }))).toContain("keys");
    expect(await store.head()).toBe(0);
  });

  it("is refused where it cannot be found, inside another one, and without a JSON value", async () => {
    await using store = memoryEvents({ keys: memorySubjectKeys() });
    class Customer {
      readonly name = personal("c1", ada);
    }
    const circle: { self?: unknown; name: unknown } = { name: personal("c1", ada) };
    circle.self = circle;
    const wrong = [
      { customer: new Customer(), name: personal("c1", ada) },
      new Customer(),
      personal("c1", { name: personal("c2", ada) }),
      { name: personal("c1", undefined as unknown as string) },
      { name: personal("c1", 1n as unknown as number) },
      circle,
    ];
    for (const data of wrong) await refusalOf(store.append({ type: "Registered", data }));
    expect(await store.head()).toBe(0);
    for (const subject of ["", 7, undefined]) expect(() => personal(subject as string, ada)).toThrow(TypeError);
    expect(() => personal("x".repeat(1001), ada)).toThrow(RangeError);
  });

  it("is typed: a value without the mark does not compile, and a reader has to handle the erased case", () => {
    // @ts-expect-error a name in clear
    const forgotten: Registered = { type: "Registered", data: { customer: "c1", name: ada } };
    const event: Registered = registered("c1", ada);
    expect([forgotten.type, event.type]).toEqual(["Registered", "Registered"]);
    const { name } = event.data;
    if (isErased(name)) expectTypeOf(name.subject).toEqualTypeOf<string>();
    else expectTypeOf(name).toExtend<string>();
    // @ts-expect-error it may be erased
    expectTypeOf<string>(name);
    expectTypeOf(personal("c1", "red" as const)).toExtend<Personal<"red" | "blue">>();
    expectTypeOf(personal("c1", { a: [1] })).toExtend<Personal<{ a: number[] }>>();
  });

  it("brings back any JSON, anywhere", async () => {
    const keys = memorySubjectKeys();
    const codec = createCodec({ keys });
    const key = fc.oneof(fc.string(), fc.constantFrom("$personal", "$$personal", "__proto__", "$erased", "0"));
    const { json } = fc.letrec<{ json: unknown }>((tie) => ({
      json: fc.oneof(
        { depthSize: "small" },
        fc.jsonValue({ maxDepth: 1 }),
        fc.array(tie("json"), { maxLength: 3 }),
        fc.array(fc.tuple(key, tie("json")), { maxLength: 3 }).map((entries) => Object.fromEntries(entries)),
      ),
    }));
    await fc.assert(
      fc.asyncProperty(json, json, key, async (plain, secret, name) => {
        const event = {
          type: "T",
          data: { plain, list: [Object.fromEntries([[name, personal("c1", secret as string)]])] },
        };
        const stored = JSON.parse(JSON.stringify(await codec.encode(event, "1"))) as StoredBody;
        const { data } = await codec.decode({ type: "T", id: "1" }, stored);
        const clear = { plain, list: [Object.fromEntries([[name, secret]])] };
        expect(JSON.stringify(data)).toBe(JSON.stringify(clear));
      }),
      { numRuns: 150 },
    );
  });
});

describe("sealed values", () => {
  async function sealedTwice(): Promise<{ codec: ReturnType<typeof createCodec>; body: StoredBody }> {
    const codec = createCodec({ keys: memorySubjectKeys() });
    const data = { a: personal("c1", ada), b: personal("c1", ada), c: personal("c2", ada) };
    return { codec, body: JSON.parse(JSON.stringify(await codec.encode({ type: "T", data }, "1"))) as StoredBody };
  }
  type Sealed = Record<"a" | "b" | "c", { $personal: Record<string, string> }>;

  it("do not show that two values are equal", async () => {
    const { codec, body } = await sealedTwice();
    const { a, b, c } = body.data as Sealed;
    const again = (await codec.encode({ type: "T", data: { a: personal("c1", ada) } }, "2")).data as Sealed;
    const texts = [a, b, c, again.a].map(({ $personal: { iv, text } }) => `${iv} ${text}`);
    expect(new Set(texts).size).toBe(4);
    expect(a.$personal["key"]).toBe(b.$personal["key"]);
    expect(a.$personal["key"]).not.toBe(c.$personal["key"]);
  });

  it("are refused when they were altered, or moved to another place, event or type", async () => {
    const { codec, body } = await sealedTwice();
    const { a, b, c } = body.data as Sealed;
    const here = { type: "T", id: "1" };
    expect((await codec.decode(here, body)).data).toEqual({ a: ada, b: ada, c: ada });
    const flipped = Buffer.from(a.$personal["text"] ?? "", "base64");
    flipped[0] = (flipped[0] ?? 0) ^ 1;
    const short = Buffer.from(a.$personal["tag"] ?? "", "base64").subarray(0, 4);
    const wrong: [typeof here, unknown][] = [
      [
        { ...here, id: "2" },
        { a, b, c },
      ],
      [
        { ...here, type: "U" },
        { a, b, c },
      ],
      [here, { a: b, b: a, c }],
      [here, { a: { $personal: { ...a.$personal, text: flipped.toString("base64") } } }],
      [here, { a: { $personal: { ...a.$personal, tag: short.toString("base64") } } }],
      [here, { a: { $personal: { ...a.$personal, iv: b.$personal["iv"] } } }],
      [here, { a: { $personal: 7 } }],
    ];
    for (const [head, data] of wrong)
      expect(await refusalOf(Promise.resolve(codec.decode(head, { data, sealed: true })))).toMatch(/was altered/);
    // With the name of another subject, whose key is another one.
    const lent = { a: { $personal: { ...a.$personal, subject: "c2" } } };
    expect((await codec.decode(here, { data: lent, sealed: true })).data).toEqual({
      a: { $erased: true, subject: "c2" },
    });
  });

  it("cost a reader no promise where there are none", async () => {
    const codec = createCodec({ keys: memorySubjectKeys() });
    expect(codec.decode({ type: "T", id: "1" }, { data: { $personal: 1 } })).not.toBeInstanceOf(Promise);
  });
});

describe("subject keys", () => {
  it("of a user's own class work, and are asked for few at a time and once for each subject", async () => {
    const known = new Map<string, Uint8Array>();
    let now = 0;
    let most = 0;
    const asked: string[] = [];
    const slowly = async <T>(work: () => T): Promise<T> => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
      return work();
    };
    // A simple class of a user: `create` makes a new key at each call.
    const keys: SubjectKeys = {
      find: async (subject) => await slowly(() => known.get(subject)),
      create: async (subject) =>
        await slowly(() => {
          asked.push(subject);
          const key = nodeRandom.bytes(32);
          known.set(subject, key);
          return key;
        }),
      forget: async (subject) => void known.delete(subject),
    };
    await using store = memoryEvents<Registered>({ keys });
    const events = Array.from({ length: 300 }, (_, index) =>
      registered(`c${Math.floor(index / 5)}`, `${ada} ${index}`),
    );
    await store.append(events);
    await store.append(registered("c7", ada));
    expect(asked.toSorted()).toEqual([...new Set(asked)].toSorted());
    expect(asked).toHaveLength(60);
    expect(most).toBeLessThanOrEqual(16);
    expect(await namesIn(store.read())).toEqual([...events.map((_, index) => `${ada} ${index}`), ada]);
    await keys.forget("c7");
    expect((await namesIn(store.read())).filter(isErased)).toHaveLength(6);
    const short: SubjectKeys = { ...keys, find: async () => new Uint8Array(16) };
    await using weak = memoryEvents<Registered>({ keys: short });
    await expect(weak.append(registered("c1", ada))).rejects.toThrow(RangeError);
  });

  it.each(kinds)("are the same for all processes that create at once, %s", async (kind) => {
    const world = await CodecWorld.make(kind);
    const all = await Promise.all(Array.from({ length: 8 }, () => world.openKeys()));
    const made = await Promise.all(all.flatMap((keys) => ["a", "b"].map((subject) => keys.create(subject))));
    const distinct = new Set(made.map((key) => Buffer.from(key).toString("hex")));
    expect(distinct.size).toBe(2);
    expect(Buffer.from(made[0] ?? [])).toHaveLength(32);
    expect(await (await world.openKeys()).find("a")).toEqual(made[0]);
    expect([...(await world.files(`${world.root}/keys`)).keys()]).toHaveLength(2);
  });

  it.each(kinds)("that are created while their subject is forgotten are gone in the end, %s", async (kind) => {
    const world = await CodecWorld.make(kind);
    for (let round = 0; round < 20; round++) {
      const subject = `c${round}`;
      const [one, two] = [await world.openKeys(), await world.openKeys()];
      const [forgotten] = await Promise.allSettled([one.forget(subject), two.create(subject), one.create(subject)]);
      expect(forgotten.status).toBe("fulfilled");
      expect(await two.find(subject)).toBeUndefined();
      await refusalOf(two.create(subject));
    }
    for (const content of (await world.files(`${world.root}/keys`)).values()) expect(content).toContain("forgottenAt");
  });

  it("are readable only by the user that the process runs as", async () => {
    const world = await CodecWorld.make("disk");
    const keys = await openSubjectKeys(`${world.root}/keys`);
    await keys.create("customer:1");
    for (const path of (await world.files(`${world.root}/keys`)).keys())
      expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("that a crash has left in a temp file are removed with the subject", async () => {
    const world = await CodecWorld.make("memory");
    const dying = tampered(world.ports.disk, { unlink: async () => await Promise.reject(new Error("dead")) });
    const key = await (await world.openKeys(undefined, dying)).create("customer:1");
    const text = Buffer.from(key).toString("base64");
    const places = async (): Promise<string[]> =>
      [...(await world.files())].filter(([, content]) => content.includes(text)).map(([path]) => path);
    expect(await places()).toHaveLength(2);
    await (await world.openKeys()).forget("customer:1");
    expect(await places()).toEqual([]);
  });

  it("are not used before they are durable, also when another process made them", async () => {
    const world = await CodecWorld.make("memory");
    const directory = `${world.root}/keys`;
    let isBlocked = false;
    const blocked = tampered(world.ports.disk, {
      syncDirectory: async (path) => {
        if (isBlocked && path === directory) throw new Error("not yet");
      },
    });
    const dying = await world.openKeys(undefined, blocked);
    isBlocked = true;
    await expect(dying.create("customer:1")).rejects.toThrow("not yet");
    const synced: string[] = [];
    const watched = tampered(world.ports.disk, {
      syncDirectory: async (path) => {
        synced.push(path);
        await world.ports.disk.syncDirectory(path);
      },
    });
    const keys = await world.openKeys(undefined, watched);
    const store = await world.open<Registered>({ keys });
    synced.length = 0;
    await store.append(registered("customer:1", ada));
    expect(synced).toContain(directory);
    synced.length = 0;
    await store.append(registered("customer:1", ada));
    expect(synced).not.toContain(directory);
    await keys.forget("customer:1");
    expect(synced).toContain(directory);
  });

  it("are refused inside a log: below it, by a link, or when a log is made around them", async () => {
    const world = await CodecWorld.make("disk");
    const early = await world.openKeys(`${world.directory}/keys`);
    const store = await world.open<Registered>({ keys: early });
    await expect(store.append(registered("c1", ada))).rejects.toMatchObject({ code: "INVALID_PATH" });
    await mkdir(`${world.directory}/deep/down`, { recursive: true });
    await symlink(`${world.directory}/deep`, `${world.root}/link`);
    for (const path of [world.directory, `${world.directory}/new/keys`, `${world.root}/link/down`])
      await expect(openSubjectKeys(path)).rejects.toMatchObject({ code: "INVALID_PATH" });
    expect(await world.ports.disk.canOpen(`${world.directory}/new`)).toBe(false);
  });

  it("that were copied to the name of another subject are refused", async () => {
    const world = await CodecWorld.make("memory");
    const keys = await world.openKeys();
    await keys.create("a");
    const [path] = (await world.files(`${world.root}/keys`)).keys();
    await keys.create("b");
    const other = [...(await world.files(`${world.root}/keys`)).keys()].find((each) => each !== path);
    await world.ports.disk.rename(path ?? "", other ?? "");
    await expect(keys.find("b")).rejects.toMatchObject({ code: "CORRUPT" });
  });
});

describe("hashedTag", () => {
  it("is the same for the same value and secret only, and shows neither", () => {
    const secret = "a secret of the house";
    const tag = hashedTag(secret, "email", "ada@example.org");
    expect(tag).toMatch(/^email:[\w-]{22}$/);
    expect(hashedTag(Buffer.from(secret), "email", "ada@example.org")).toBe(tag);
    for (const other of [
      hashedTag(`${secret}!`, "email", "ada@example.org"),
      hashedTag(secret, "mail", "ada@example.org"),
      hashedTag(secret, "email", "eve@example.org"),
    ])
      expect(other.split(":")[1]).not.toBe(tag.split(":")[1]);
    expect(() => hashedTag("short", "email", "x")).toThrow(RangeError);
  });
});

/** The same disk with some calls replaced. */
function tampered(disk: Disk, changes: Partial<Disk>): Disk {
  return new Proxy(disk, {
    get: (target, name) => {
      const change: unknown = Reflect.get(changes, name);
      const own: unknown = Reflect.get(target, name);
      return change ?? (typeof own === "function" ? own.bind(target) : own);
    },
  });
}
