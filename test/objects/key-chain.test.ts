// The chain of one key on every kind of disk: numbers without gaps, blocks, and keys that go and
// come anew.
import { describe, expect, it } from "vitest";
import { SharedSync } from "../../src/durable/publish/shared-sync.ts";
import { stage } from "../../src/durable/publish/staging.ts";
import { findSlot } from "../../src/objects/key/entry-file.ts";
import { KeyChain, nothing } from "../../src/objects/key/key-chain.ts";
import type { StagedEntry } from "../../src/objects/key/key-storage.ts";
import { encodeEntry, type KeyEntry } from "../../src/objects/model/entry.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { idOf } from "../../harness/scenarios/objects/key-actors.ts";
import { sites, type Site } from "../sites/sites.ts";

const facts = { key: "k", config: 1, atMs: 0 };

class KeyUser {
  readonly ports: Ports;
  readonly chain: KeyChain;
  readonly #root: string;

  constructor(ports: Ports, root: string, slotsPerBlock?: number) {
    const shared = new SharedSync(ports.disk);
    this.ports = ports;
    this.#root = root;
    this.chain = new KeyChain(
      {
        staging: this.#staging,
        // What a user appends was staged before.
        stage: async (entry) => entry as StagedEntry,
        unstage: async () => undefined,
        prepared: async () => `${root}/staging`,
        sync: async (...directories) => void (await Promise.all(directories.map((each) => shared.sync(each)))),
        slotsPerBlock,
      },
      `${root}/keys/000/k`,
    );
  }

  get #staging() {
    return { disk: this.ports.disk, random: this.ports.random, directory: async () => `${this.#root}/temp` };
  }

  async stage(id: string, kind: "put" | "closed"): Promise<StagedEntry> {
    const version = { isNull: false, size: 4, etag: "", headers: {}, metadata: {}, tags: {} };
    const entry: KeyEntry = kind === "put" ? { kind, id, ...facts, ...version } : { kind, id, ...facts };
    const proof = encodeEntry(entry);
    const temp = await stage(this.#staging, Buffer.concat([proof, Buffer.from("body")]), { sync: true });
    return { temp, proof, entry };
  }

  async put(id: string): Promise<number> {
    const candidate = await this.stage(id, "put");
    const added = await this.chain.append(async () => ({ add: candidate }), { isJudged: false });
    return added?.number ?? 0;
  }

  async ids(): Promise<string[]> {
    const head = await this.chain.findHead();
    const ids: string[] = [];
    for (let number = 1; number <= (head?.number ?? 0); number++) {
      const slot = await findSlot(this.ports.disk, this.chain.names.slotPath(head!.incarnation, number));
      ids.push(slot?.entry.id ?? "(a gap)");
    }
    return ids;
  }
}

async function makeUsers({ directory, openPorts }: Site, count: number, slotsPerBlock?: number): Promise<KeyUser[]> {
  const users: KeyUser[] = [];
  for (let each = 0; each < count; each++) users.push(new KeyUser(await openPorts(), directory, slotsPerBlock));
  for (const name of ["temp", "staging", "keys"]) await users[0]!.ports.disk.mkdir(`${directory}/${name}`);
  return users;
}

const wordsOf = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

describe.each(sites)("the chain of a key on %s", (_name, makeSite) => {
  it("keeps every concurrent put, each under its own number", async () => {
    const users = await makeUsers(await makeSite(), 3);
    const ids = users.flatMap((_user, index) => wordsOf(7, `p${index}-`));
    const numbers = await Promise.all(ids.map((id, index) => users[index % users.length]!.put(id)));
    expect([...numbers].sort((a, b) => a - b)).toEqual(ids.map((_id, index) => index + 1));
    const kept = await users[0]!.ids();
    expect(numbers.map((number) => kept[number - 1])).toEqual(ids);
  });

  it("continues in a new block when one is full, even for a process that slept", async () => {
    const [ada, bob] = (await makeUsers(await makeSite(), 2, 4)) as [KeyUser, KeyUser];
    await bob.put("first");
    const ids = wordsOf(20, "a");
    for (const id of ids) await ada.put(id);
    expect(await bob.put("last")).toBe(22);
    expect(await bob.ids()).toEqual(["first", ...ids, "last"]);
    expect(await ada.ids()).toEqual(await bob.ids());
  });

  it("leaves nothing of a closed key, and starts over with number 1", async () => {
    const [ada, bob] = (await makeUsers(await makeSite(), 2, 4)) as [KeyUser, KeyUser];
    for (const id of wordsOf(10, "a")) await ada.put(id);
    await bob.ids();
    const last = await ada.stage("end", "closed");
    expect(await ada.chain.close(async () => ({ add: last }))).toBe(true);
    const { disk } = ada.ports;
    expect(await disk.list(ada.chain.names.directory.replace(/\/k$/, ""))).toEqual([]);
    expect(await ada.chain.findHead()).toBeUndefined();
    expect(await bob.put("again")).toBe(1);
    expect(await ada.ids()).toEqual(["again"]);
  });

  it("is not closed if its newest entry is not the one that the collector judged", async () => {
    const [ada, bob] = (await makeUsers(await makeSite(), 2)) as [KeyUser, KeyUser];
    await ada.put("one");
    const last = await bob.stage("end", "closed");
    const closing = bob.chain.close(async (head) => {
      if (idOf(head) === "one") await ada.put("two");
      return idOf(head) === "one" ? { add: last } : nothing;
    });
    expect(await closing).toBe(false);
    expect(await bob.ids()).toEqual(["one", "two"]);
  });

  it("creates no key without the directory of shards, because the bucket is deleted", async () => {
    const [ada] = (await makeUsers(await makeSite(), 1)) as [KeyUser];
    const { disk } = ada.ports;
    await disk.rmdir(ada.chain.names.directory.replace(/\/000\/k$/, ""));
    await expect(ada.put("lost")).rejects.toMatchObject({ errno: "ENOENT" });
  });
});
