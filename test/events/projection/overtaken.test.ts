// Several programs that build at the same time, perhaps with different versions: one that was
// overtaken takes nothing away from readers, and no switch goes back.
import { expect, onTestFinished, test } from "vitest";
import type { Running } from "../../../src/common.ts";
import type { EventStore } from "../../../src/events/model/event-store.ts";
import { accessOf } from "../../../src/events/log/log-access.ts";
import type { Projection } from "../../../src/events/projection/definition.ts";
import { ProjectionFiles } from "../../../src/events/projection/generation.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { LogWorld, withDisk } from "../follow/log-world.ts";
import { shelves, stocked, type Shelf, type ShopEvent } from "./shelf.ts";

const newer = shelves({ version: 2, apply: () => ({ count: 20, events: 20 }) });
const [madeByOld, madeByNewer] = [
  { count: 1, events: 1 },
  { count: 20, events: 20 },
];

/** A log with one event, and its document in generation 1. */
async function worldWithTea(): Promise<{ world: LogWorld; store: EventStore<ShopEvent> }> {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await store.append(stocked("tea", 1));
  const projection = await openProjection(store, shelves());
  await using _running = projection.run();
  await projection.waitUntilProcessed(1);
  return { world, store };
}

async function generationsOf(world: LogWorld): Promise<string[]> {
  const { disk } = await world.ports();
  return (await disk.list(`${world.directory}/projections/shelves`)).filter((name) => name !== "catalog").sort();
}

/** A program that sleeps before its first link to such a path. */
class Sleeper {
  readonly asleep: Promise<void>;
  readonly wake: () => void;
  readonly #fallAsleep: () => void;
  readonly #awake: Promise<void>;
  readonly #isReached: (path: string) => boolean;
  #hasSlept = false;

  constructor(isReached: (path: string) => boolean) {
    this.#isReached = isReached;
    [this.asleep, this.#fallAsleep] = whenCalled();
    [this.#awake, this.wake] = whenCalled();
    // Otherwise a test that fails early would wait for ever.
    onTestFinished(() => this.wake());
  }

  tamper = (ports: Ports): Ports =>
    withDisk(ports, {
      link: async (from, to) => {
        if (!this.#hasSlept && this.#isReached(to)) {
          this.#hasSlept = true;
          this.#fallAsleep();
          await this.#awake;
        }
        await ports.disk.link(from, to);
      },
    });
}

function whenCalled(): [promise: Promise<void>, call: () => void] {
  let call = (): void => undefined;
  const promise = new Promise<void>((resolve) => (call = resolve));
  return [promise, call];
}

test("a builder that was overtaken by a newer version neither removes nor closes the current generation", async () => {
  // It once removed every generation below its own, although its own was not current.
  const { world, store } = await worldWithTea();
  const slow = new Sleeper((path) => path.includes("/0000000002/"));
  const slower = new Sleeper((path) => path.includes("/0000000003/"));
  const old = await openProjection(await world.open<ShopEvent>({ tamper: slow.tamper }), shelves());
  const rebuilding = old.rebuild();
  await slow.asleep;
  const next = await openProjection(await world.open<ShopEvent>({ tamper: slower.tamper }), newer);
  next.run();
  await slower.asleep;
  slow.wake();
  await expect(rebuilding).rejects.toMatchObject({ code: "NEWER_FORMAT" });
  const reader = await openProjection(store, shelves());
  expect(await reader.get("tea")).toEqual(madeByOld);
  const { checkpoints } = await (await ProjectionFiles.open(accessOf(store), "shelves")).openGeneration(1);
  expect((await checkpoints.read()).state).toMatchObject({ isBegun: true, isClosed: false });
  slower.wake();
  await next.waitUntilProcessed((await store.append(stocked("tea", 1))).last);
  expect(await next.get("tea")).toEqual(madeByNewer);
  expect(await reader.get("tea")).toEqual(madeByOld);
  await expect.poll(() => generationsOf(world)).toEqual(["0000000001", "0000000003"]);
});

test("a builder whose files were removed by a newer version says that there is one", async () => {
  const { world, store } = await worldWithTea();
  const slow = new Sleeper((path) => path.includes("/0000000002/"));
  const old = await openProjection(await world.open<ShopEvent>({ tamper: slow.tamper }), shelves());
  const rebuilding = old.rebuild();
  await slow.asleep;
  const next = await openProjection(store, newer);
  await next.rebuild();
  slow.wake();
  await expect(rebuilding).rejects.toMatchObject({ code: "NEWER_FORMAT" });
  expect(await next.get("tea")).toEqual(madeByNewer);
});

test("a builder that slept before the switch, while its generation was given up, removes nothing that is current", async () => {
  const { world, store } = await worldWithTea();
  const { generations } = await ProjectionFiles.open(accessOf(store), "shelves");
  const reader = await openProjection(store, shelves());
  let isFolded = false;
  let appends = 0;
  const seen: unknown[] = [];
  const slow = await world.open<ShopEvent>({
    tamper: (own) =>
      withDisk(own, {
        link: async (from, to) => {
          if (isFolded && to.includes("/catalog/")) {
            appends++;
            // First the switch, which comes too late, then the naming of another generation.
            if (appends === 1) await generations.abandon(2);
            else seen.push(await reader.get("tea"));
          }
          await own.disk.link(from, to);
        },
      }),
  });
  const projection = await openProjection(slow, shelves());
  await projection.rebuild({ onProgress: () => void (isFolded = true) });
  expect(seen[0]).toEqual(madeByOld);
  expect(await reader.get("tea")).toEqual(madeByOld);
  expect(await generationsOf(world)).toEqual(["0000000003"]);
});

test("a rebuild by a program with an older version is refused, and takes nothing back", async () => {
  const { world, store } = await worldWithTea();
  const next = await openProjection(store, newer);
  await next.rebuild();
  const old = await openProjection(await world.open<ShopEvent>(), shelves());
  await expect(old.rebuild()).rejects.toMatchObject({ code: "NEWER_FORMAT" });
  expect(await old.get("tea")).toEqual(madeByOld);
  expect(await next.get("tea")).toEqual(madeByNewer);
  expect(await generationsOf(world)).toEqual(["0000000001", "0000000002"]);
});

/**
 * Runs the old version: it looks at generation 1 before the switch, and takes its next step after the switch to
 * what `definition` has built.
 */
async function runAcrossSwitch(
  { world, store }: { world: LogWorld; store: EventStore<ShopEvent> },
  definition: typeof newer,
): Promise<{ running: Running; projection: Projection<Shelf> }> {
  let isFolded = false;
  const slow = new Sleeper((path) => isFolded && path.includes("/catalog/"));
  const builder = await openProjection(await world.open<ShopEvent>({ tamper: slow.tamper }), definition);
  const rebuilding = builder.rebuild({ onProgress: () => void (isFolded = true) });
  await slow.asleep;
  let hasLooked = false;
  const other = await world.open<ShopEvent>({
    tamper: (ports) =>
      withDisk(ports, {
        canOpen: async (path) => {
          const isThere = await ports.disk.canOpen(path);
          // The last call of a look at the checkpoint.
          if (!hasLooked && /\/0000000001\/checkpoint\/[^/]*\/open$/.test(path)) {
            hasLooked = true;
            slow.wake();
            await rebuilding;
          }
          return isThere;
        },
      }),
  });
  const projection = await openProjection(other, shelves());
  const running = projection.run();
  // The run may end before the caller listens.
  running.done.catch(() => undefined);
  await rebuilding;
  expect(hasLooked).toBe(true);
  await store.append(stocked("tea", 1));
  return { running, projection };
}

test("in a rolling upgrade the older program goes on with its documents when the newer one switches between two of its steps", async () => {
  const { world, store } = await worldWithTea();
  const { running, projection } = await runAcrossSwitch({ world, store }, newer);
  await projection.waitUntilProcessed(2);
  expect(await projection.get("tea")).toEqual({ count: 2, events: 2 });
  expect(await (await openProjection(store, newer)).get("tea")).toEqual(madeByNewer);
  expect(await generationsOf(world)).toEqual(["0000000001", "0000000002"]);
  await running.stop();
});

test("a run does not build again what another process has just switched to", async () => {
  const { world, store } = await worldWithTea();
  const { running, projection } = await runAcrossSwitch({ world, store }, shelves());
  await projection.waitUntilProcessed(2);
  expect(await projection.get("tea")).toEqual({ count: 2, events: 2 });
  expect(await generationsOf(world)).toEqual(["0000000002"]);
  await running.stop();
});
