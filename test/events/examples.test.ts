// The seven use cases of dcb.events, each with its rules and the race that it must win: users copy
// these examples.
import { describe, expect, it, vi } from "vitest";
import { given, type EventStore, type NewEvent } from "holdfast/events";
import * as courses from "../../examples/events/course-subscriptions.ts";
import * as prices from "../../examples/events/dynamic-product-price.ts";
import * as aggregate from "../../examples/events/event-sourced-aggregate.ts";
import * as invoices from "../../examples/events/invoice-number.ts";
import * as records from "../../examples/events/no-duplicate-record.ts";
import * as signUps from "../../examples/events/opt-in-token.ts";
import * as usernames from "../../examples/events/unique-username.ts";
import { meeting } from "./decide/shop.ts";

/** Runs all of them; each has decided before the first one appends. */
async function race<E extends NewEvent, R>(
  store: EventStore<E>,
  ...runners: readonly ((store: EventStore<E>) => Promise<R>)[]
): Promise<PromiseSettledResult<R>[]> {
  const append = store.append.bind(store);
  const allHaveDecided = meeting(runners.length);
  const late = vi.spyOn(store, "append").mockImplementation(async (...args) => {
    await allHaveDecided();
    return await append(...args);
  });
  try {
    return await Promise.allSettled(runners.map(async (run) => await run(store)));
  } finally {
    late.mockRestore();
  }
}

const statusesOf = (ends: readonly PromiseSettledResult<unknown>[]): string[] =>
  ends.map(({ status }) => status).sort();
const later = (ms: number): Date => new Date(Date.now() + ms);
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

describe("course subscriptions", () => {
  type E = courses.CourseEvent;
  const defined = (course: string, capacity: number): E => ({
    type: "CourseDefined",
    data: { course, capacity },
    tags: [`course:${course}`],
  });
  const subscribed = (student: string, course: string): E => ({
    type: "StudentSubscribed",
    data: { student, course },
    tags: [`student:${student}`, `course:${course}`],
  });
  const resized = (course: string, capacity: number): E =>
    ({ ...defined(course, capacity), type: "CapacityChanged" }) as E;

  it("define a course once", async () => {
    await given<E>([])
      .when((store) => courses.defineCourse(store, "c1", 10))
      .thenEvents([defined("c1", 10)]);
    await given<E>([defined("c1", 10)])
      .when((store) => courses.defineCourse(store, "c1", 20))
      .thenRefuses(/exists already/);
  });

  it("change a capacity, unless it is the same, too small, or of no course", async () => {
    const change = (store: EventStore<E>) => courses.changeCapacity(store, "c1", 2);
    await given<E>([defined("c1", 10)])
      .when(change)
      .thenEvents([resized("c1", 2)]);
    await given<E>([defined("c1", 2)])
      .when(change)
      .thenNothing();
    await given<E>([])
      .when(change)
      .thenRefuses(/no course/);
    const students = ["ada", "bob", "eve"].map((student) => subscribed(student, "c1"));
    await given<E>([defined("c1", 10), ...students])
      .when(change)
      .thenRefuses(/More than 2/);
  });

  it("subscribe a student to a course that has a seat left, once", async () => {
    const subscribe = (store: EventStore<E>) => courses.subscribe(store, "ada", "c1");
    await given<E>([defined("c1", 1)])
      .when(subscribe)
      .thenEvents([subscribed("ada", "c1")]);
    await given<E>([])
      .when(subscribe)
      .thenRefuses(/no course/);
    await given<E>([defined("c1", 2), subscribed("ada", "c1")])
      .when(subscribe)
      .thenRefuses(/ada is in c1 already/);
    await given<E>([defined("c1", 1), subscribed("bob", "c1")])
      .when(subscribe)
      .thenRefuses(/full/);
    await given<E>([defined("c1", 1), subscribed("bob", "c1"), resized("c1", 2)])
      .when(subscribe)
      .thenEvents([subscribed("ada", "c1")]);
  });

  it("let a student have five courses", async () => {
    const four = ["c2", "c3", "c4", "c5"].map((course) => subscribed("ada", course));
    const subscribe = (store: EventStore<E>) => courses.subscribe(store, "ada", "c1");
    await given<E>([defined("c1", 9), ...four])
      .when(subscribe)
      .thenEvents([subscribed("ada", "c1")]);
    await given<E>([defined("c1", 9), ...four, subscribed("ada", "c6")])
      .when(subscribe)
      .thenRefuses(/5 courses/);
  });

  it("give the last seat to one of two, and the fifth course of a student to one of two courses", async () => {
    await given<E>([defined("c1", 1)])
      .when(async (store) =>
        statusesOf(
          await race(
            store,
            (each) => courses.subscribe(each, "ada", "c1"),
            (each) => courses.subscribe(each, "bob", "c1"),
          ),
        ),
      )
      .thenResult(["fulfilled", "rejected"]);
    const four = ["c2", "c3", "c4", "c5"].map((course) => subscribed("ada", course));
    await given<E>([defined("c1", 9), defined("c6", 9), ...four])
      .when(async (store) =>
        statusesOf(
          await race(
            store,
            (each) => courses.subscribe(each, "ada", "c1"),
            (each) => courses.subscribe(each, "ada", "c6"),
          ),
        ),
      )
      .thenResult(["fulfilled", "rejected"]);
  });
});

describe("a unique username", () => {
  type E = usernames.AccountEvent;
  const registered = (username: string): E => ({
    type: "AccountRegistered",
    data: { username },
    tags: [`username:${username.toLowerCase()}`],
  });
  const closed = (username: string): E => ({ ...registered(username), type: "AccountClosed" }) as E;
  const renamed = (from: string, to: string): E => ({
    type: "UsernameChanged",
    data: { from, to },
    tags: [`username:${from}`, `username:${to}`],
  });

  it("is registered once, whatever its letter case", async () => {
    await given<E>([])
      .when((store) => usernames.register(store, "Ada"))
      .thenEvents([registered("Ada")]);
    await given<E>([registered("Ada")])
      .when((store) => usernames.register(store, "ADA"))
      .thenRefuses(/taken/);
  });

  it("stays reserved for three days after its account was closed", async () => {
    const past = [registered("ada"), closed("ada")];
    await given<E>(past)
      .when((store) => usernames.register(store, "ada", later(2 * dayMs)))
      .thenRefuses(/three days/);
    await given<E>(past)
      .when((store) => usernames.register(store, "ada", later(4 * dayMs)))
      .thenEvents([registered("ada")]);
  });

  it("changes hands by renaming: the new one is taken, the old one is reserved", async () => {
    await given<E>([registered("ada")])
      .when((store) => usernames.rename(store, "ada", "eve"))
      .thenEvents([renamed("ada", "eve")]);
    const past = [registered("ada"), renamed("ada", "eve")];
    await given<E>(past)
      .when((store) => usernames.register(store, "eve", later(9 * dayMs)))
      .thenRefuses(/taken/);
    await given<E>(past)
      .when((store) => usernames.register(store, "ada"))
      .thenRefuses(/three days/);
    await given<E>(past)
      .when((store) => usernames.register(store, "ada", later(4 * dayMs)))
      .thenEvents([registered("ada")]);
    await given<E>([registered("ada"), registered("eve")])
      .when((store) => usernames.rename(store, "ada", "eve"))
      .thenRefuses(/taken/);
  });

  it("is of an account that exists", async () => {
    await given<E>([])
      .when((store) => usernames.closeAccount(store, "ada"))
      .thenRefuses(/no account/);
    await given<E>([])
      .when((store) => usernames.rename(store, "ada", "eve"))
      .thenRefuses(/no account/);
    await given<E>([registered("ada")])
      .when((store) => usernames.closeAccount(store, "ada"))
      .thenEvents([closed("ada")]);
  });

  it("goes to one of two concurrent requests, by sign-up or by renaming", async () => {
    await given<E>([registered("bob")])
      .when(async (store) =>
        statusesOf(
          await race(
            store,
            (each) => usernames.register(each, "ada"),
            (each) => usernames.rename(each, "bob", "ada"),
          ),
        ),
      )
      .thenResult(["fulfilled", "rejected"]);
  });
});

describe("invoice numbers", () => {
  type E = invoices.InvoiceEvent;
  const created = (number: number): E => ({
    type: "InvoiceCreated",
    data: { number, customer: "ada", cents: 100 },
    tags: [`invoice:${number}`, "customer:ada"],
  });
  const cancelled = (number: number): E => ({
    type: "InvoiceCancelled",
    data: { number },
    tags: [`invoice:${number}`],
  });
  const create = (store: EventStore<E>) => invoices.createInvoice(store, { customer: "ada", cents: 100 });

  it("begin at 1 and go up by 1", async () => {
    await given<E>([])
      .when(create)
      .thenEvents([created(1)])
      .thenResult(1);
    await given<E>([created(1), created(2)])
      .when(create)
      .thenEvents([created(3)])
      .thenResult(3);
  });

  it("are not given out again after an invoice was cancelled, which it is once", async () => {
    await given<E>([created(1), cancelled(1)])
      .when(create)
      .thenResult(2);
    const cancel = (store: EventStore<E>) => invoices.cancelInvoice(store, 1);
    await given<E>([created(1)])
      .when(cancel)
      .thenEvents([cancelled(1)]);
    await given<E>([created(1), cancelled(1)])
      .when(cancel)
      .thenNothing();
    await given<E>([])
      .when(cancel)
      .thenRefuses(/no invoice 1/);
  });

  it("have no gap and no double when eight tills create them at once", async () => {
    await given<E>([])
      .when((store) => race(store, ...Array.from({ length: 8 }, () => create)))
      .thenEvents(Array.from({ length: 8 }, (_, index) => created(index + 1)));
  });
});

describe("a dynamic product price", () => {
  type E = prices.PriceEvent;
  const defined = (product: string, cents: number): E => ({
    type: "ProductDefined",
    data: { product, cents },
    tags: [`product:${product}`],
  });
  const changed = (product: string, cents: number): E => ({ ...defined(product, cents), type: "PriceChanged" }) as E;
  const ordered = (...items: prices.SeenPrice[]): E => ({
    type: "ProductsOrdered",
    data: { order: "1", items },
    tags: ["order:1", ...items.map(({ product }) => `product:${product}`)],
  });
  const order = (cents: number, now?: Date) => (store: EventStore<E>) =>
    prices.order(store, "1", [{ product: "lamp", cents }], now);

  it("is defined once, and changed only to another one", async () => {
    await given<E>([defined("lamp", 10)])
      .when((store) => prices.defineProduct(store, "lamp", 10))
      .thenRefuses(/exists/);
    await given<E>([defined("lamp", 10)])
      .when((store) => prices.changePrice(store, "lamp", 20))
      .thenEvents([changed("lamp", 20)]);
    await given<E>([defined("lamp", 10)])
      .when((store) => prices.changePrice(store, "lamp", 10))
      .thenNothing();
    await given<E>([])
      .when((store) => prices.changePrice(store, "lamp", 10))
      .thenRefuses(/no product/);
  });

  it("is the one that counts now", async () => {
    await given<E>([defined("lamp", 10)])
      .when(order(10))
      .thenEvents([ordered({ product: "lamp", cents: 10 })]);
    await given<E>([defined("lamp", 10)])
      .when(order(9))
      .thenRefuses(/is 10, not 9/);
    await given<E>([])
      .when(order(10))
      .thenRefuses(/no product/);
  });

  it("still counts ten minutes after it has changed, and not longer", async () => {
    const past = [defined("lamp", 10), changed("lamp", 20)];
    await given<E>(past)
      .when(order(10, later(9 * minuteMs)))
      .thenEvents([ordered({ product: "lamp", cents: 10 })]);
    await given<E>(past)
      .when(order(10, later(11 * minuteMs)))
      .thenRefuses(/is 20, not 10/);
    await given<E>(past)
      .when(order(20, later(11 * minuteMs)))
      .thenEvents([ordered({ product: "lamp", cents: 20 })]);
  });

  it("is checked for every product of a basket", async () => {
    const basket = (desk: number) => (store: EventStore<E>) =>
      prices.order(store, "1", [
        { product: "lamp", cents: 10 },
        { product: "desk", cents: desk },
      ]);
    const past = [defined("lamp", 10), defined("desk", 99)];
    await given<E>(past)
      .when(basket(99))
      .thenEvents([ordered({ product: "lamp", cents: 10 }, { product: "desk", cents: 99 })]);
    await given<E>(past)
      .when(basket(98))
      .thenRefuses(/desk is 99, not 98/);
  });

  it("that changes during an order is seen by the order, which may take the older one", async () => {
    await given<E>([defined("lamp", 10)])
      .when((store) => race(store, order(10), (each) => prices.changePrice(each, "lamp", 20)))
      .thenResult([
        { status: "fulfilled", value: undefined },
        { status: "fulfilled", value: undefined },
      ]);
  });
});

describe("an event-sourced aggregate", () => {
  type E = aggregate.OrderEvent;
  const tags = ["order:7"];
  const opened: E = { type: "OrderOpened", data: { order: "7", customer: "ada" }, tags };
  const line = (quantity: number): E => ({ type: "LineAdded", data: { order: "7", sku: "lamp", quantity }, tags });
  const placed = (quantity: number): E => ({ type: "OrderPlaced", data: { order: "7", quantity }, tags });
  const change = (act: (order: aggregate.Order) => void) => (store: EventStore<E>) =>
    aggregate.changeOrder(store, "7", act);
  const addLine = (quantity: number) => change((order) => order.addLine("lamp", quantity));

  it("records its changes as one batch", async () => {
    const all = change((order) => {
      order.open("ada");
      order.addLine("lamp", 2);
      order.place();
    });
    await given<E>([])
      .when(all)
      .thenEvents([opened, line(2), placed(2)]);
  });

  it("keeps its rules: once opened, not empty, at most ten pieces, closed when it is placed", async () => {
    await given<E>([opened])
      .when(change((order) => order.open("bob")))
      .thenRefuses(/exists/);
    await given<E>([])
      .when(addLine(1))
      .thenRefuses(/missing/);
    await given<E>([opened])
      .when(change((order) => order.place()))
      .thenRefuses(/empty/);
    await given<E>([opened, line(9)])
      .when(addLine(1))
      .thenEvents([line(1)]);
    await given<E>([opened, line(9)])
      .when(addLine(2))
      .thenRefuses(/at most 10/);
    await given<E>([opened, line(1), placed(1)])
      .when(addLine(1))
      .thenRefuses(/placed/);
  });

  it("writes nothing when it refuses in the middle", async () => {
    const tooMuch = change((order) => {
      order.addLine("lamp", 6);
      order.addLine("lamp", 6);
    });
    await given<E>([opened])
      .when(tooMuch)
      .thenRefuses(/at most 10/);
  });

  it("never goes beyond its limit when two change it at once", async () => {
    await given<E>([opened])
      .when(async (store) => statusesOf(await race(store, addLine(6), addLine(6))))
      .thenEvents([line(6)])
      .thenResult(["fulfilled", "rejected"]);
    await given<E>([opened])
      .when(async (store) => statusesOf(await race(store, addLine(5), addLine(5))))
      .thenEvents([line(5), line(5)]);
  });
});

describe("an opt-in token", () => {
  type E = signUps.SignUpEvent;
  const email = "Ada@example.com";
  const begun = (token: string): E => ({
    type: "SignUpBegun",
    data: { email, name: "Ada", token },
    tags: [`sign-up:ada@example.com:${token}`],
  });
  const confirmed = (token: string): E => ({
    type: "SignUpConfirmed",
    data: { email, name: "Ada" },
    tags: [`sign-up:ada@example.com:${token}`, "email:ada@example.com"],
  });
  const confirm = (token: string, now?: Date) => (store: EventStore<E>) =>
    signUps.confirmSignUp(store, { email, token }, now);

  it("is issued when a sign-up begins", async () => {
    await given<E>([])
      .when((store) => signUps.beginSignUp(store, { email, name: "Ada" }, "111111"))
      .thenEvents([begun("111111")])
      .thenResult("111111");
    await given<E>([])
      .when(async (store) => /^\d{6}$/.test(await signUps.beginSignUp(store, { email, name: "Ada" })))
      .thenResult(true);
  });

  it("confirms the address that it was sent to", async () => {
    await given<E>([begun("111111")])
      .when(confirm("111111"))
      .thenEvents([confirmed("111111")]);
    await given<E>([begun("111111")])
      .when(confirm("222222"))
      .thenRefuses(/not valid/);
    await given<E>([begun("111111")])
      .when((store) => signUps.confirmSignUp(store, { email: "bob@example.com", token: "111111" }))
      .thenRefuses(/not valid/);
  });

  it("is used once, and expires after an hour", async () => {
    await given<E>([begun("111111"), confirmed("111111")])
      .when(confirm("111111"))
      .thenRefuses(/used before/);
    await given<E>([begun("111111")])
      .when(confirm("111111", later(59 * minuteMs)))
      .thenEvents([confirmed("111111")]);
    await given<E>([begun("111111")])
      .when(confirm("111111", later(61 * minuteMs)))
      .thenRefuses(/expired/);
  });

  it("makes one account for an address, though two tokens were sent", async () => {
    const past = [begun("111111"), begun("222222")];
    await given<E>([...past, confirmed("111111")])
      .when(confirm("222222"))
      .thenRefuses(/has an account/);
    await given<E>([...past, confirmed("111111")])
      .when((store) => signUps.beginSignUp(store, { email, name: "Ada" }))
      .thenRefuses(/has an account/);
    await given<E>(past)
      .when(async (store) => statusesOf(await race(store, confirm("111111"), confirm("222222"))))
      .thenResult(["fulfilled", "rejected"]);
  });

  it("survives a double click", async () => {
    await given<E>([begun("111111")])
      .when((store) => race(store, confirm("111111"), confirm("111111")))
      .thenEvents([confirmed("111111")]);
  });
});

describe("no duplicate record", () => {
  type E = records.OrderEvent;
  const form = { key: "k1", sku: "lamp", quantity: 1 };
  const placed: E = {
    type: "OrderPlaced",
    data: { order: "7", form: "k1", sku: "lamp", quantity: 1 },
    tags: ["order:7", "form:k1"],
  };

  it("is made of a form that is sent again: it gives the first order", async () => {
    await given<E>([placed])
      .when((store) => records.placeOrder(store, form))
      .thenNothing()
      .thenResult("7");
  });

  it("is made of a form with the same key and another content: that is refused", async () => {
    await given<E>([placed])
      .when((store) => records.placeOrder(store, { ...form, quantity: 2 }))
      .thenRefuses(/another content/);
  });

  it("is made of two forms with equal content: these are two orders", async () => {
    await given<E>([placed])
      .when(async (store) => (await records.placeOrder(store, { ...form, key: "k2" })) === "7")
      .thenResult(false);
  });

  it("is made by a double click", async () => {
    await given<E>([])
      .when(async (store) => {
        const send = (each: EventStore<E>) => records.placeOrder(each, form);
        const ends = await race(store, send, send);
        return {
          ids: new Set(ends.map((end) => end.status === "fulfilled" && end.value)).size,
          head: await store.head(),
        };
      })
      .thenResult({ ids: 1, head: 1 });
  });
});

describe("every example", () => {
  it.each([
    ["course subscriptions", courses.main, ["subscribed", "Error: The course chemistry is full."]],
    ["unique username", usernames.main, ["registered"]],
    ["invoice number", invoices.main, ["invoices 1, 2, 3"]],
    ["dynamic product price", prices.main, ["ordered at the price of a moment ago", "not 990"]],
    ["event-sourced aggregate", aggregate.main, ["1 OrderOpened", "4 OrderPlaced"]],
    ["opt-in token", signUps.main, ["confirmed"]],
    ["no duplicate record", records.main, ["one order in the log: 1"]],
  ])("can be run as it is: %s", async (_, main, expected) => {
    const log = vi.spyOn(console, "log").mockImplementation(() => undefined);
    try {
      await main();
      const printed = log.mock.calls.map((words) => words.join(" ")).join("\n");
      for (const text of expected) expect(printed).toContain(text);
    } finally {
      log.mockRestore();
    }
  });
});
