// One action on an object store of which a disk call fails, or at which its process is killed: it is
// done or not done, as the caller was told, and what it leaves is collected.
import { listIfThere } from "../../src/durable/publish/directory.ts";
import { expect } from "vitest";
import { isHoldfastError } from "../../src/errors.ts";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import { Buckets } from "../../src/objects/bucket/buckets.ts";
import { Collector } from "../../src/objects/collect/collect.ts";
import type { OpenKey } from "../../src/objects/key/key-chains.ts";
import { keyDirectories } from "../../src/objects/listing/walk-keys.ts";
import type { UploadPartInfo } from "../../src/objects/model/object.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import { local, nfs, World, type Fault } from "../sites/world.ts";
import { smallInline, versionsOf } from "./object-sites.ts";

const leaseMs = 1000;
const looks = 8;
/** An action that takes more steps of 20 ms hangs. */
const stepsMax = 20_000;
const key = "cat";
const large = "a body that is large enough for a file of its own";

/** What one process does, and how others see whether it was done. */
export interface Action {
  readonly name: string;
  readonly before?: (store: DirectoryObjects, key: string) => Promise<unknown>;
  readonly act: (store: DirectoryObjects, key: string) => Promise<unknown>;
  readonly look: (store: DirectoryObjects, key: string) => Promise<unknown>;
  readonly undone: unknown;
  readonly done: unknown;
}

const kept = (store: DirectoryObjects): Promise<Bucket> => store.bucket("kept");
const passing = (store: DirectoryObjects): Promise<Bucket> => store.bucket("passing");
const inKept = async (store: DirectoryObjects, key: string): Promise<string[]> => versionsOf(await kept(store), key);
const isMade = async (store: DirectoryObjects): Promise<boolean> => (await store.findBucket("another")) !== undefined;

/** What the client of an upload knows of it. */
let begun: { readonly id: string; readonly part: UploadPartInfo } | undefined;

export const actions: readonly Action[] = [
  {
    name: "a put to a new key",
    act: async (store, key) => await (await kept(store)).put(key, large),
    look: inKept,
    undone: [],
    done: [large],
  },
  {
    name: "a put where no versions are kept",
    before: async (store, key) => await (await passing(store)).put(key, `old ${large}`),
    act: async (store, key) => await (await passing(store)).put(key, large),
    look: async (store, key) => versionsOf(await passing(store), key),
    undone: [`old ${large}`],
    done: [large],
  },
  {
    name: "a deletion",
    before: async (store, key) => await (await kept(store)).put(key, "old"),
    act: async (store, key) => await (await kept(store)).delete(key),
    look: inKept,
    undone: ["old"],
    done: ["(marker)", "old"],
  },
  {
    name: "the removal of a version",
    before: async (store, key) => {
      for (const text of ["old", large]) await (await kept(store)).put(key, text);
    },
    act: async (store, key) => {
      const bucket = await kept(store);
      await bucket.delete(key, { versionId: (await bucket.head(key)).versionId });
    },
    look: inKept,
    undone: [large, "old"],
    done: ["old"],
  },
  {
    name: "a change of tags",
    before: async (store, key) => await (await kept(store)).put(key, "old"),
    act: async (store, key) => await (await kept(store)).setTags(key, { a: "1" }),
    look: async (store, key) => await (await kept(store)).tags(key),
    undone: {},
    done: { a: "1" },
  },
  {
    name: "a copy",
    before: async (store, key) => await (await kept(store)).put(`${key} source`, large),
    act: async (store, key) => await (await kept(store)).copy({ key: `${key} source` }, key),
    look: inKept,
    undone: [],
    done: [large],
  },
  {
    name: "the completion of an upload",
    before: async (store, key) => {
      const upload = await (await kept(store)).createUpload(key);
      begun = { id: upload.id, part: await upload.put(1, large) };
    },
    act: async (store, key) => {
      const { id = "", part } = begun ?? {};
      await (await (await kept(store)).upload(key, id)).complete(part === undefined ? [] : [part]);
    },
    look: inKept,
    undone: [],
    done: [large],
  },
  {
    name: "the making of a bucket",
    act: async (store) => await store.createBucket("another"),
    look: isMade,
    undone: false,
    done: true,
  },
  {
    name: "the deletion of a bucket",
    before: async (store) => {
      const bucket = await store.createBucket("another");
      await bucket.put("k", "x");
      await bucket.delete("k");
    },
    act: async (store) => await store.deleteBucket("another"),
    look: isMade,
    undone: true,
    done: false,
  },
];

/** A world with an object store, and what a process of it does: its time passes meanwhile. */
export class FailingWorld {
  readonly world: World;
  readonly #isShare: boolean;
  readonly #stores = new Map<string, DirectoryObjects>();

  constructor(isShare: boolean) {
    this.#isShare = isShare;
    this.world = new World({ volume: isShare ? nfs : local });
  }

  async make(): Promise<void> {
    await this.world.ports("maker").disk.mkdir("/objects");
    const store = await this.open("maker");
    await this.step(store.createBucket("kept", { versioning: "enabled" }));
    await this.step(store.createBucket("passing"));
  }

  async open(process: string): Promise<DirectoryObjects> {
    const known = this.#stores.get(process);
    if (known !== undefined) return known;
    const ports = this.world.ports(process, this.#isShare ? `machine of ${process}` : "machine");
    const store = new DirectoryObjects(await this.step(openStorage(ports, "/objects", { leaseMs })), smallInline);
    this.#stores.set(process, store);
    return store;
  }

  async step<T>(action: Promise<T>): Promise<T> {
    let isOver = false;
    const over = action.finally(() => (isOver = true));
    over.catch(() => undefined);
    for (let count = 0; count < stepsMax && !isOver; count++) await this.world.advance(20);
    if (!isOver) throw new Error("it hangs");
    return await over;
  }

  /** Bodies that no version names, what was prepared, and temp files: after all leases are over. */
  async leftovers(): Promise<string[]> {
    const ports = this.world.ports("collector", "machine of the collector");
    const { storage } = await this.step(openStorage(ports, "/objects", { leaseMs }));
    const buckets = new Buckets(storage);
    // So often that a silent holder is judged, and what it has left is taken.
    for (let look = 0; look < looks; look++) {
      await this.step(storage.ground.sweep());
      await this.world.advance(leaseMs / 4);
    }
    await this.step(new Collector(storage, buckets).collect());
    const left: string[] = [];
    const { disk, layout } = storage;
    const own = (await this.step(storage.ground.session())).holder.id;
    for (const { name } of await this.step(buckets.list())) {
      const bucket = await this.step(buckets.get(name));
      const named = new Set<string>();
      for await (const directory of keyDirectories(bucket))
        for (const file of await bucket.useDirectory(directory, bodiesOf)) named.add(file);
      for (const holder of await listIfThere(disk, bucket.layout.bodies))
        for (const file of await listIfThere(disk, bucket.layout.bodiesOf(holder)))
          if (!named.has(`bodies/${holder}/${file}`)) left.push(`${bucket.layout.bodiesOf(holder)}/${file}`);
    }
    for (const above of [layout.stagings, storage.ground.layout.temps])
      for (const holder of await listIfThere(disk, above))
        if (holder !== own)
          for (const name of await listIfThere(disk, `${above}/${holder}`)) left.push(`${above}/${holder}/${name}`);
    for (const name of await listIfThere(disk, layout.trash)) left.push(`${layout.trash}/${name}`);
    return left;
  }
}

async function bodiesOf({ chain, history }: OpenKey): Promise<string[]> {
  const head = await chain.findHead();
  const { versions = [] } = (head && (await history.read(head))) ?? {};
  return versions.flatMap(({ entry }) => (entry.kind === "put" ? (entry.parts ?? []).map(({ file }) => file) : []));
}

/** Every call of the action fails once, or from there on; the caller is told the truth. */
export async function checkFaults(
  action: Action,
  fault: Pick<Fault, "label" | "lasting">,
  isShare: boolean,
): Promise<void> {
  let at = 1;
  while (await checkFault(action, { process: "ada", at, ...fault }, isShare)) at++;
  expect(at).toBeGreaterThan(5);
}

/** False when the action has fewer calls. */
async function checkFault(
  { before, act, look, done, undone }: Action,
  fault: Fault,
  isShare: boolean,
): Promise<boolean> {
  const { at, label, lasting } = fault;
  const failing = new FailingWorld(isShare);
  await failing.make();
  const [ada, bea] = [await failing.open("ada"), await failing.open("bea")];
  if (before !== undefined) await failing.step(Promise.resolve(before(bea, key)));
  let told: string | undefined;
  const hasCome = await failing.world.withFault(fault, async () => {
    try {
      await failing.step(Promise.resolve(act(ada, key)));
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      told = error.code;
    }
  });
  const found = JSON.stringify(await failing.step(Promise.resolve(look(bea, key))));
  const what = `at ${at}: ${told ?? "acknowledged"}, ${failing.world.spoiled.slice(0, 3).join("; ")}`;
  const mayBe = told === undefined ? [done] : told === "OUTCOME_UNKNOWN" ? [done, undone] : [undone];
  expect([what, mayBe.map((each) => JSON.stringify(each))]).toEqual([what, expect.arrayContaining([found])]);
  if (label === "ENOSPC" && told !== undefined)
    expect([what, told]).toEqual([what, expect.stringMatching(/^(DISK_FULL|OUTCOME_UNKNOWN)$/)]);
  // What could not be removed while the disk failed goes when its process does.
  if (lasting) {
    failing.world.kill("ada");
    expect([what, await failing.leftovers()]).toEqual([what, []]);
  }
  return hasCome;
}

/** Its process is killed at every call: the action is done or not, the next process goes on, and nothing is left. */
export async function checkKills(action: Action, isShare: boolean): Promise<void> {
  let at = 1;
  while (!(await checkKill(action, at, isShare))) at++;
  expect(at).toBeGreaterThan(5);
}

/** True when it was acknowledged before that call. */
async function checkKill({ before, act, look, done, undone }: Action, at: number, isShare: boolean): Promise<boolean> {
  const failing = new FailingWorld(isShare);
  await failing.make();
  const [ada, bea] = [await failing.open("ada"), await failing.open("bea")];
  if (before !== undefined) await failing.step(Promise.resolve(before(bea, key)));
  let isAcknowledged = false;
  await failing.world.killAtCall("ada", at, async () => {
    await act(ada, key);
    isAcknowledged = true;
  });
  failing.world.kill("ada");
  const found = JSON.stringify(await failing.step(Promise.resolve(look(bea, key))));
  const mayBe = isAcknowledged ? [done] : [done, undone];
  expect([at, mayBe.map((each) => JSON.stringify(each))]).toEqual([at, expect.arrayContaining([found])]);
  if (found === JSON.stringify(undone)) {
    await failing.step(Promise.resolve(act(bea, key)));
    expect([at, await failing.step(Promise.resolve(look(bea, key)))]).toEqual([at, done]);
  }
  expect([at, await failing.leftovers()]).toEqual([at, []]);
  return isAcknowledged;
}
