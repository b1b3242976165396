// Damage to one record of a box: it costs what that record says, and nothing beside it. `verify` names it, and a repair
// sets aside exactly that.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { checksumOf } from "../../src/format/checksum.ts";
import { openBox } from "../../src/handoff/box/open-box.ts";
import { compactEntries } from "../../src/handoff/ledger/compaction.ts";
import { shardsOf, type FoundEntry } from "../../src/handoff/ledger/upkeep.ts";
import type { BoxHandoff } from "../../src/handoff/handoff.ts";
import type { Delivery } from "../../src/handoff/model/delivery.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { openHandoff, type Handoff } from "../../src/handoff/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { listOf } from "../sites/event-logs.ts";
import { sites } from "../sites/sites.ts";
import { openOn } from "./consume/boxes.ts";

const large = "x".repeat(70_000);
const hourMs = 3_600_000;

type Damage = (disk: Disk, path: string) => Promise<void>;

async function rewrite(disk: Disk, path: string, change: (bytes: Buffer) => Uint8Array): Promise<void> {
  const bytes = Buffer.from(await disk.readFile(path, 1_000_000));
  await disk.unlink(path);
  await disk.createFile(path, change(bytes), { sync: true });
}

const damages: Readonly<Record<string, Damage>> = {
  "a flipped bit": async (disk, path) =>
    await rewrite(disk, path, (bytes) => {
      const at = bytes.length >> 1;
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      return bytes;
    }),
  "its first half": async (disk, path) => await rewrite(disk, path, (bytes) => bytes.subarray(0, bytes.length / 2)),
  "no bytes": async (disk, path) => await rewrite(disk, path, () => new Uint8Array()),
  "a directory in its place": async (disk, path) => {
    await disk.unlink(path);
    await disk.mkdir(path);
    await disk.createFile(`${path}/precious`, Buffer.from("of another program"), { sync: true });
  },
  "a newer format": async (disk, path) =>
    await rewrite(disk, path, (bytes) => {
      const kind = /"kind":"([^"]*)"/.exec(bytes.toString("utf8"))?.[1] ?? "ticket";
      const head = `{"kind":"${kind}","format":99,"by":"9.9.9","body":{}`;
      return Buffer.from(`${head},"crc":"${checksumOf(head)}"}\n`);
    }),
  "no right to read it": async () => undefined,
  "a bad block": async () => undefined,
};

interface Secret {
  path?: RegExp;
  /** The file with the bad block. */
  identity?: string;
  /** The disk stores nothing either, until so many reads have failed. */
  downForReads?: number;
}

/** Ports that cannot read the files whose path matches. */
function reading(ports: Ports, secret: Secret): Ports {
  const disk = new Proxy(ports.disk, {
    get: (target, name: keyof Disk) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return async (...args: never[]): Promise<unknown> => {
        const path = String(args[0]);
        if (secret.downForReads !== undefined && name === "createFile") throw diskError("EIO", name, path);
        if (name === "open" || name === "readFile") {
          if (secret.path?.test(path) === true) throw diskError("EACCES", name, path);
          const isBad = secret.identity !== undefined && (await target.findStat(path))?.identity === secret.identity;
          if (isBad && secret.downForReads !== undefined && --secret.downForReads === 0) {
            delete secret.downForReads;
            delete secret.identity;
          }
          if (isBad) throw diskError("EIO", name, path);
        }
        return await (value as (...given: never[]) => Promise<unknown>).apply(target, args);
      };
    },
  });
  return { ...ports, disk };
}

interface World {
  readonly directory: string;
  readonly disk: Disk;
  readonly ports: Ports;
  readonly secret: Secret;
  readonly ids: Readonly<Record<string, string>>;
  readonly claimed: Delivery;
  open(): Promise<BoxHandoff>;
}

const [, makeMemory] = sites.find(([name]) => name === "the memory disk")!;

/** A box with something in every state. */
async function makeWorld(): Promise<World> {
  const site = await makeMemory();
  const directory = `${site.directory}/box`;
  const secret: World["secret"] = {};
  const ports = reading(await site.openPorts(), secret);
  const open = async (): Promise<BoxHandoff> => await openOn(ports, directory);
  const box = await open();
  const ids: Record<string, string> = {};
  const publish = async (name: string, options: Parameters<BoxHandoff["publish"]>[1] = {}): Promise<void> => {
    ids[name] = (await box.publish({ f: name === "large" ? large : name }, { key: name, ...options })).id;
  };
  const take = async (name: string, options = {}): Promise<Delivery> => {
    await publish(name, options);
    return (await box.take())!;
  };
  await (await take("done")).ack({ booked: 1 });
  const made = await take("made");
  await made.output("o.txt", "out");
  await made.ack();
  await (await take("dead")).fail("no");
  await (await take("retried")).retry({ delayMs: hourMs, reason: "later" });
  await publish("parked");
  await box.takeParked(hourMs);
  const claimed = await take("claimed");
  await claimed.progress({ half: true });
  for (const name of ["waiting", "large"]) await publish(name);
  for (const name of ["first", "second"]) await publish(name, { group: "g" });
  await publish("other", { group: "h" });
  await publish("delayed", { delayMs: hourMs });
  return { directory, disk: ports.disk, ports, secret, ids, claimed, open };
}

/** The paths of all files of the box, in order. */
async function filesOf(disk: Disk, directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of (await disk.list(directory)).sort()) {
    const path = `${directory}/${name}`;
    if ((await disk.stat(path)).kind === "file") found.push(path);
    else found.push(...(await filesOf(disk, path)));
  }
  return found;
}

function hashOf(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

interface Kind {
  /** Part of its path, and of no other. */
  readonly find: (world: World) => string | Promise<string>;
  /** The ticket that it costs. */
  readonly costs?: string;
  /** The ticket that it is: its file moves. */
  readonly moves?: string;
  /** How `verify` names it, if not by its own path. */
  readonly named?: RegExp;
  readonly severity?: "note";
  /** A repair leaves it alone. */
  readonly stays?: true;
}

const ticket = (state: RegExp, name: string): Kind => ({
  find: ({ ids }) => `${state.source}.*${ids[name]}`,
  costs: name,
  moves: name,
});

const kinds: Readonly<Record<string, Kind>> = {
  "a waiting ticket": ticket(/incoming/, "waiting"),
  "the first ticket of a lane": ticket(/lanes/, "first"),
  "a delayed ticket": ticket(/delayed/, "delayed"),
  "a parked claim": ticket(/parked/, "parked"),
  // Its worker has read it, and settles it.
  "a claim of a living worker": { ...ticket(/processing/, "claimed"), stays: true },
  "a ticket that is done": ticket(/archive/, "done"),
  "a dead letter": ticket(/error/, "dead"),
  "a payload": { find: ({ ids }) => `data/.*${ids["large"]}`, costs: "large", named: /incoming/ },
  "the key of a waiting ticket": { find: () => `keys/.*${hashOf("waiting")}` },
  "the key of a ticket that is done": { find: () => `keys/.*${hashOf("done")}` },
  "an entry of the ledger": { find: () => `ledger/.*${hashOf("done")}` },
  "an entry of the ledger with outputs": {
    find: () => `ledger/.*${hashOf("made")}/record.json`,
    named: /ledger/,
  },
  "an output": { find: () => `ledger/.*${hashOf("made")}/outputs`, stays: true },
  "the note of an attempt": { find: ({ ids }) => `notes/.*${ids["dead"]}` },
  "a word of progress": { find: () => "progress.json" },
  "the order of a lane": { find: () => "lanes/05/order/0.*/0000000002", named: /lanes\/05\/order$/, stays: true },
  "the record of a living holder": { find: () => ".holdfast/holders/.*json", severity: "note", stays: true },
};

/** Whether a record of a kind can be damaged in this way: a payload and an output have no format. */
function isPossible(kind: string, damage: string): boolean {
  if (damage === "a newer format") return !["a payload", "an output", "the record of a living holder"].includes(kind);
  // The ground reads these, before any ticket.
  if (damage === "a bad block") return !["the order of a lane", "the record of a living holder"].includes(kind);
  return !(damage === "no right to read it" && kind === "an output");
}

const cases = Object.keys(kinds).flatMap((kind) =>
  Object.keys(damages)
    .filter((damage) => isPossible(kind, damage))
    .map((damage) => ({ kind, damage })),
);

const states = ["incoming", "delayed", "processing", "archive", "error"] as const;

async function listAll(box: BoxHandoff): Promise<string[]> {
  const ids: string[] = [];
  for (const state of states) ids.push(...(await listOf(box.list(state))).map(({ id }) => id));
  return ids.sort();
}

/** What a worker gets until there is nothing more, by key. */
async function workOff(box: Pick<Handoff, "consume">): Promise<string[]> {
  const keys: string[] = [];
  await box.consume(async ({ key }) => void keys.push(key), { idleMs: 0 }).done;
  return keys.sort();
}

describe("one damaged record of a box affects nothing else", () => {
  it.each(cases)("$kind: $damage", async ({ kind: name, damage }) => {
    const kind = kinds[name]!;
    const world = await makeWorld();
    const { directory, disk, secret, ids } = world;
    const pattern = new RegExp(await kind.find(world));
    const [path = ""] = (await filesOf(disk, directory)).filter((each) => pattern.test(each));
    expect(path).not.toBe("");
    await damages[damage]!(disk, path);
    const isSecret = damage === "no right to read it";
    if (damage === "a bad block") secret.identity = (await disk.stat(path)).identity;
    // A ticket moves, and its id with it.
    if (isSecret)
      secret.path = kind.moves === undefined ? new RegExp(`^${path}$`) : new RegExp(`(?<!notes/.*)${ids[kind.moves]}`);

    // Looking goes on, and misses nothing.
    const box = await world.open();
    await box.stats();
    expect(await listAll(box)).toEqual(Object.values(ids).sort());
    for (const id of Object.values(ids)) expect(await box.find(id)).toMatchObject({ id });
    const { ok, problems } = await box.verify();
    expect(ok).toBe(kind.severity === "note");
    expect(problems).toMatchObject([{ severity: kind.severity ?? "damage" }]);
    expect(problems[0]?.path).toMatch(kind.named ?? new RegExp(`${path}$`));

    // So do producers, but for the lane whose order is damaged, and workers.
    expect(await box.publish({ f: "1" }, { key: "new" })).toMatchObject({ duplicate: false });
    expect(await box.publish({ f: "1" }, { group: "h" })).toMatchObject({ duplicate: false });
    const ready = ["waiting", "large", "first", "second", "other"].filter((each) => each !== kind.costs);
    const worked = await workOff(box);
    expect(worked.filter((key) => key in ids)).toEqual(ready.sort());
    expect(worked).toContain("new");
    await world.claimed.ack();
    if (kind.costs !== "parked") await (await box.resumeParked(ids["parked"]!)).ack();

    // A repair sets aside what was damaged, and not what may be whole: of a newer release, or of another user.
    const before = await listAll(box);
    await box.verify({ repair: true });
    await box.verify({ repair: true });
    const after = await box.verify();
    const mayBeWhole = isSecret || damage === "a newer format";
    const isLeft = kind.stays === true || mayBeWhole;
    if (!isLeft) expect(after.problems.filter(({ severity }) => severity === "damage")).toEqual([]);
    const others = before.filter((id) => id !== ids[kind.costs ?? ""]);
    expect(await listAll(box)).toEqual(expect.arrayContaining(others));
    await box.collect();
    expect(await box.publish({ f: "1" }, { key: "last" })).toMatchObject({ duplicate: false });
    expect(await workOff(box)).toEqual(["last"]);
    delete secret.path;
  });
});

describe("a damaged record", () => {
  it("of a block of the ledger leaves its keys done", async () => {
    const { directory, disk, ports, open } = await makeWorld();
    const box = await open();
    const keys = Array.from({ length: 9 }, (_, index) => `block ${index}`);
    for (const key of keys) await box.publish({ f: "1" }, { key });
    await workOff(box);
    const { box: raw } = await openBox(ports, directory);
    const entries: FoundEntry[] = [];
    for await (const found of shardsOf(raw, {}))
      entries.push(...found.filter(({ committed }) => keys.includes(committed.key)));
    await compactEntries(raw, await raw.ground.session(), entries);
    await raw.ground.close();
    const [hash, other] = [hashOf(keys[0]!), hashOf(keys[1]!)];
    const entryOf = (of: string): string => `${directory}/ledger/${of.slice(0, 3)}/${of}`;
    const inode = async (of: string): Promise<string> => (await disk.stat(entryOf(of))).identity;
    expect(await inode(hash)).toBe(await inode(other));
    await damages["a flipped bit"]!(disk, entryOf(hash));
    expect((await box.verify()).problems).toMatchObject([{ severity: "damage", path: entryOf(hash) }]);
    for (const key of keys) expect(await box.publish({ f: "2" }, { key })).toMatchObject({ duplicate: true });
    expect(await workOff(box)).toEqual([]);
    await box.verify({ repair: true });
    expect(await box.verify()).toMatchObject({ ok: true });
    for (const key of keys) expect(await box.publish({ f: "2" }, { key })).toMatchObject({ duplicate: true });
  });

  it.each(Object.keys(damages))("of a pause pauses, is named, and is not ended by a repair: %s", async (damage) => {
    const { directory, disk, secret, open } = await makeWorld();
    const box = await open();
    await box.pause("stocktaking");
    const path = `${directory}/pause.json`;
    await damages[damage]!(disk, path);
    if (damage === "no right to read it") secret.path = /pause/;
    if (damage === "a bad block") secret.identity = (await disk.stat(path)).identity;
    const other = await open();
    expect(await other.stats()).toMatchObject({ paused: true });
    expect(await other.take()).toBe(undefined);
    for (const repair of [false, true])
      expect((await other.verify({ repair })).problems).toMatchObject([{ severity: "damage", path, repaired: false }]);
    expect(await other.take()).toBe(undefined);
    if (damage === "a directory in its place") return;
    await other.resume();
    expect(await other.take()).toBeDefined();
  });

  it("that the disk cannot read, while it stores nothing either, is not judged: the consumer fails, and its ticket stays", async () => {
    const { directory, disk, secret, ids, open } = await makeWorld();
    const box = await open();
    const [path = ""] = (await filesOf(disk, directory)).filter((each) => each.includes(`incoming/5/`));
    secret.identity = (await disk.stat(path)).identity;
    // As many reads as it takes to judge a file: then the disk is back.
    secret.downForReads = 4;
    await expect(workOff(box)).rejects.toMatchObject({ code: "IO_ERROR", errno: "EIO" });
    delete secret.downForReads;
    delete secret.identity;
    expect((await box.stats()).error).toBe(1);
    await box.close();
    expect(await workOff(await open())).toEqual(["first", "large", "other", "second", "waiting"]);
    expect(await listAll(await open())).toEqual(Object.values(ids).sort());
  });

  it("of the order of a lane is created again when no ticket of the lane is left", async () => {
    const { directory, disk, open } = await makeWorld();
    const [slot = ""] = (await filesOf(disk, directory)).filter((path) =>
      /lanes\/05\/order\/0.*\/0000000002$/.test(path),
    );
    await damages["no bytes"]!(disk, slot);
    const box = await open();
    await expect(box.publish({ f: "1" }, { group: "g" })).rejects.toMatchObject({ code: "CORRUPT" });
    expect(await box.verify({ repair: true })).toMatchObject({ ok: false, problems: [{ repaired: false }] });
    expect(await workOff(box)).toEqual(["first", "large", "other", "second", "waiting"]);
    await box.verify({ repair: true });
    await (await open()).publish({ f: "1" }, { key: "new", group: "g" });
    await box.publish({ f: "1" }, { key: "newer", group: "g" });
    expect(await workOff(box)).toEqual(["new", "newer"]);
    expect(await box.verify()).toMatchObject({ ok: true });
  });

  it("of the lock table blocks tickets with a group, and is reported when no other ticket is left", async () => {
    const { directory, disk, open } = await makeWorld();
    const box = await open();
    expect(await workOff(box)).toHaveLength(5);
    await box.close();
    const other = await open();
    for (const name of ["a", "b"]) await other.publish({ f: "1" }, { key: name });
    await other.publish({ f: "1" }, { key: "grouped", group: "g" });
    for (const slot of (await filesOf(disk, directory)).filter((path) => /table\/0.*\/[0-9]{10}$/.test(path)))
      await damages["a flipped bit"]!(disk, slot);
    const keys: string[] = [];
    const consuming = (await open()).consume(async ({ key }) => void keys.push(key), { idleMs: 0 });
    await expect(consuming.done).rejects.toMatchObject({ code: "CORRUPT" });
    expect(keys.sort()).toEqual(["a", "b"]);
    expect(await other.findByKey("grouped")).toMatchObject({ state: "incoming", attempt: 0 });
  });

  it("of a delayed ticket's lane blocks only that ticket", async () => {
    const { directory, disk, open } = await makeWorld();
    const box = await open();
    // Time passes: long enough that the order is damaged before the tickets are due.
    await box.publish({ f: "1" }, { key: "due", group: "g", delayMs: 500 });
    await box.publish({ f: "1" }, { key: "due too", delayMs: 500 });
    for (const slot of (await filesOf(disk, directory)).filter((path) => path.includes("lanes/05/order")))
      await damages["no bytes"]!(disk, slot);
    const other = await open();
    const keys: string[] = [];
    await other.consume(async ({ key }) => void keys.push(key), { idleMs: 700 }).done;
    expect(keys).toContain("due too");
    expect(keys).not.toContain("due");
    expect(await box.findByKey("due")).toMatchObject({ state: "delayed" });
  });
});

describe.runIf(process.platform !== "win32")("odd entries of a box on the real disk", () => {
  const makers: Readonly<Record<string, (path: string) => unknown>> = {
    "a FIFO": (path) => execFileSync("mkfifo", [path]),
    "a link that leads to itself": (path) => symlinkSync(path, path),
    "a link that leads nowhere": (path) => symlinkSync("/nonexistent/file", path),
    "a directory": (path) => (mkdirSync(path), writeFileSync(`${path}/precious`, "")),
    "a file of another program": (path) => writeFileSync(path, "junk"),
    "a file of 5 GB": (path) => (writeFileSync(path, ""), truncateSync(path, 5e9)),
  };

  it.each(Object.keys(makers))("%s in any place stops nobody, and is named", async (name) => {
    const directory = `${makeScratch()}/box`;
    const box = await openHandoff(directory);
    onTestFinished(() => box.close());
    await box.publish({ f: "1" }, { key: "plain" });
    await box.publish({ f: "1" }, { key: "grouped", group: "g" });
    await box.publish({ f: "1" }, { key: "due", delayMs: 1 });
    const [minute] = readdirSync(`${directory}/incoming/5`);
    const idOf = (number: number): string => `01m7q84dn8d0000000000000000000000${String(number).padStart(3, "0")}`;
    const places = [
      `incoming/5/${minute}/${idOf(1)}-0.json`,
      "incoming/4",
      "incoming/5/0029916000",
      "delayed/0000000002",
      `lanes/05/incoming/0000000000000000-${idOf(2)}-0.json`,
      "lanes/77",
      `processing/${idOf(3)}`,
      `staging/${idOf(4)}`,
      `adopting/${idOf(5)}`,
      `parked/0000000000000001-${idOf(6)}-1.json`,
      "archive/20200101",
      "error/20200102",
      "keys/001",
      "ledger/002",
      "notes/003",
      "data/00",
      "junk",
    ];
    for (const place of places) {
      mkdirSync(dirname(`${directory}/${place}`), { recursive: true });
      makers[name]!(`${directory}/${place}`);
    }
    const other = await openHandoff(directory);
    onTestFinished(() => other.close());
    await other.stats();
    for (const state of states) await listOf(other.list(state));
    const { problems } = await other.verify();
    const unnamed = places.filter((place) => !problems.some(({ path }) => `${path}/`.includes(`/${place}/`)));
    // A directory is what belongs there, or what a dead process has left: what is in it is named.
    expect(name === "a directory" ? [] : unnamed).toEqual([]);
    const keys: string[] = [];
    await other.consume(async ({ key }) => void keys.push(key), { idleMs: 100 }).done;
    expect(keys.sort()).toEqual(["due", "grouped", "plain"]);
    await other.collect();
    for (let round = 1; round <= 3; round++) await other.verify({ repair: true });
    expect((await other.verify()).problems.filter(({ severity }) => severity !== "note")).toEqual([]);
    await other.publish({ f: "1" }, { key: "new", group: "g" });
    expect(await workOff(other)).toEqual(["new"]);
  });

  it.runIf(process.platform === "linux")("a name that is not UTF-8 stops nobody, and is named", async () => {
    const directory = `${makeScratch()}/box`;
    const box = await openHandoff(directory);
    onTestFinished(() => box.close());
    await box.publish({ f: "1" }, { key: "plain" });
    for (const place of ["incoming", "incoming/5", "keys", "processing", "adopting", "notes", "trash"]) {
      mkdirSync(`${directory}/${place}`, { recursive: true });
      writeFileSync(Buffer.concat([Buffer.from(`${directory}/${place}/caf`), Buffer.from([0xe9])]), "");
    }
    const { problems } = await box.verify({ repair: true });
    expect(problems.filter(({ path }) => path.includes("caf")).length).toBeGreaterThanOrEqual(5);
    expect(await workOff(box)).toEqual(["plain"]);
    await box.collect();
  });
});
