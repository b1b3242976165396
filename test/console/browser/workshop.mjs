// A process on a store, for the tests of the console in a browser: it fills every part, holds a lock that another waits
// for, and works until it is killed. Names are hostile where they may be.
import { openProjection } from "../../../dist/events/index.js";
import { openStore } from "../../../dist/index.js";

const [directory, role] = process.argv.slice(2);
export const hostile = {
  html: `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`,
  control: "bell\u0007 esc\u001b[31m null-ish\u0001",
  rtl: "report\u202Efdp.exe",
  arabic: "تقرير المخزون",
  long: "n".repeat(1000),
};

const store = await openStore(directory, {
  name: role === "first" ? "till 1" : "till <b>2</b>\u202E",
  leaseMs: 10_000,
});
const locks = await store.locks();
/** A hold that the program forgets is released. */
const held = (globalThis.held = []);
const events = await store.events("main");
const box = await store.handoff("labels");

if (role === "first") {
  for (let number = 1; number <= 120; number++) {
    const sku = `A${number % 7}`;
    const sold = { type: number % 5 === 0 ? "Stocked" : "Sold", data: { sku, number }, tags: [`sku:${sku}`] };
    await events.append(sold);
  }
  const cause = await events.last();
  await events.append({ type: "Shipped", data: { by: hostile.html }, tags: [hostile.rtl, hostile.html], metadata: { causationId: cause.id, correlationId: cause.id } }); // prettier-ignore
  const stock = await openProjection(events, {
    name: "stock",
    query: { types: ["Sold", "Stocked"] },
    key: (event) => event.data.sku,
    apply: (state, event) => ({ sold: (state?.sold ?? 0) + 1, last: event.data.number }),
  });
  stock.run().done.catch(() => undefined);
  await stock.waitUntilProcessed(100);
  events.consume("mailer", { types: ["Shipped"] }, async () => undefined).done.catch(() => undefined);
  for (const key of ["label-1", "label-2", hostile.html, hostile.control, hostile.rtl, hostile.arabic, hostile.long])
    await box.publish({ "label.txt": `Label of ${key}`, "order.json": JSON.stringify({ key }) }, { key, meta: { from: "till 1" } }); // prettier-ignore
  for (let number = 0; number < 7; number++) {
    const delivery = await box.take();
    await delivery.fail(
      delivery.key === "label-1" ? "The printer is out of paper." : `No template for ${delivery.key}`,
    );
  }
  for (let number = 1; number <= 3; number++) await box.publish({ "a.txt": "x" }, { key: `done-${number}`, group: "north" }); // prettier-ignore
  for (let number = 1; number <= 3; number++) {
    const delivery = await box.take();
    await delivery.ack({ printed: number });
  }
  for (let number = 1; number <= 60; number++) await box.publish({ "a.txt": "x" }, { key: `waiting-${number}` });
  const objects = await store.objects();
  const photos = await objects.createBucket("photos");
  await photos.setVersioning("enabled");
  for (const body of ["first", "second", "third"])
    await photos.put("cats/tom.txt", body, { contentType: "text/plain" });
  for (const key of [hostile.html, hostile.control, hostile.rtl, hostile.arabic, hostile.long.slice(0, 900)])
    await photos.put(key, "hostile");
  for (let number = 1; number <= 150; number++) await photos.put(`many/${String(number).padStart(3, "0")}`, "x");
  await photos.createUpload("films/long.mov");
  const files = await store.files();
  await files.write("notes/today.md", "Count the shelves in the north aisle.");
  await files.write("notes/old.md", "Nothing.");
  await files.move("notes/old.md", "archive/old.md");
  await files.write(`odd/${hostile.arabic}.md`, "Hello.");
  await files.write(`odd/<img src=x onerror=alert(1)>.md`, hostile.html);
  const session = await files.session("till 1");
  await session.append({ role: "user", content: "Where are the shelves?" });
  await session.commit();
  await session.append({ role: "assistant", content: hostile.html });
  await files.settled();
  held.push(await locks.acquire("warehouse/aisle-1", { mode: "tree", tag: "stock-take <b>until noon</b>" }));
  held.push(await locks.acquire("notes/today.md", { shared: true }));
} else {
  void locks.acquire("warehouse/aisle-1/shelf-4", { timeoutMs: Infinity, tag: "refill" }).then((hold) => held.push(hold)); // prettier-ignore
  held.push(await locks.acquire("warehouse/aisle-2"));
  setInterval(() => void events.append({ type: "Sold", data: { sku: "B1" }, tags: ["sku:B1"] }).catch(() => undefined), 400); // prettier-ignore
}
process.send?.("ready");
setInterval(() => undefined, 1000);
