// Backups of a store that eight processes write to while they are killed, and what must hold of each restored copy.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Acknowledged, BackupChildOrders } from "../../harness/processes/backup/child.ts";
import { Chance } from "../../harness/processes/chance.ts";
import { Chaos } from "../../harness/processes/chaos.ts";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import { Crew } from "../../harness/processes/crew.ts";
import { backup, openStore, restore, verifyStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";

export interface Rounds {
  readonly rounds: number;
  readonly seed: number;
}

/** What the rounds met, so that a run that met nothing cannot pass. */
export interface RoundsReport {
  readonly kills: number;
  readonly judged: number;
  readonly events: number;
}

const processes = 8;
const module = new URL("../../harness/processes/backup/child.ts", import.meta.url);

/** Makes a backup in each round, restores it, and judges it. Rejects when a promise is broken. */
export async function runAndJudge({ rounds, seed }: Rounds): Promise<RoundsReport> {
  const scratch = makeScratch();
  const [live, target] = [join(scratch, "live"), join(scratch, "target")];
  {
    await using store = await openStore(live);
    await (await store.objects()).createBucket("photos", { versioning: "enabled" });
    await store.events();
    await store.handoff("in");
    await store.handoff("out");
    await store.files();
  }
  const names = Array.from({ length: processes }, (_, index) => `p${index}`);
  const crew = new Crew<Acknowledged>({
    names,
    module: compiledModule(module),
    argsOf: (name) => {
      const orders: BackupChildOrders = { directory: live, name, seed: seed * 1_000 + names.indexOf(name) };
      return [JSON.stringify(orders)];
    },
  });
  const chance = new Chance(seed);
  let events = 0;
  const kills = await crew.run(async () => {
    // Some are stopped as well, so that a claim or a lock goes on in the middle of a backup.
    const newChaos = (): Chaos =>
      new Chaos(crew.children, { chance, everyMsMax: 400, killPart: 0.7, stopMs: [[50, 600]] });
    let kills = 0;
    await until(() => crew.history.length >= 40);
    for (let round = 0; round < rounds; round++) {
      const chaos = newChaos();
      chaos.begin();
      const heard = crew.history.length + 20;
      await until(() => crew.history.length >= heard || crew.failures.length > 0);
      expect(crew.failures).toEqual([]);
      // Only what was acknowledged by now must be in the copy.
      const acknowledged = crew.history.map(({ report }) => report);
      const made = await backup(live, target);
      expect(made.problems).toEqual([]);
      await chaos.end();
      kills += chaos.kills;
      // They would only make the judgement slower.
      for (const child of crew.children) child.stop();
      const copy = join(scratch, `copy ${round}`);
      await restore(target, copy);
      events = await judge(copy, acknowledged);
      rmSync(copy, { recursive: true });
      for (const child of crew.children) child.cont();
    }
    expect(await crew.finish()).toEqual([]);
    return kills;
  });
  expect(crew.failures).toEqual([]);
  return { kills, judged: crew.history.length, events };
}

/** Returns the number of events. */
async function judge(copy: string, acknowledged: readonly Acknowledged[]): Promise<number> {
  expect(await verifyStore(copy)).toMatchObject({ ok: true, problems: [] });
  await using store = await openStore(copy, { create: false, durability: "none" });
  const [events, box, sent] = [await store.events(), await store.handoff("in"), await store.handoff("out")];
  const bucket = await (await store.objects()).bucket("photos");
  const clean = { ok: true };
  expect(await events.verify()).toMatchObject(clean);
  for (const each of [box, sent]) expect(await each.verify()).toMatchObject(clean);
  expect(await (await store.objects()).verify()).toMatchObject(clean);

  const written = new Set<string>();
  const handled = new Map<string, number>();
  for await (const { type, data } of events.read("all")) {
    const { what = "", id = "" } = data as { readonly what?: string; readonly id?: string };
    if (type === "Written") written.add(what);
    else handled.set(id, (handled.get(id) ?? 0) + 1);
  }
  const [keys, ids] = [new Set<string>(), new Set<string>()];
  const done = new Set<string>();
  for (const state of ["incoming", "delayed", "processing", "archive", "error"] as const)
    for await (const { id, key } of all(box, state)) {
      // Never twice.
      expect(ids.has(id)).toBe(false);
      ids.add(id);
      keys.add(key);
      if (state === "archive") done.add(id);
    }
  // What a finished ticket had done before is in the copy.
  for (const id of done) expect(handled.get(id) ?? 0).toBeGreaterThan(0);
  const out = new Set<string>();
  for (const state of ["incoming", "processing", "archive"] as const)
    for await (const { key } of all(sent, state)) out.add(key);
  const objects = new Set<string>();
  for await (const { key } of bucket.versions()) objects.add(key);
  const missing = acknowledged.filter(({ part, what }) => {
    if (part === "events") return !written.has(what);
    if (part === "ticket") return !keys.has(what);
    if (part === "unkeyed") return !ids.has(what);
    if (part === "object") return !objects.has(what);
    const [left, right] = [join(copy, "files", what), join(copy, "files", what.replace(/^z/, "a"))];
    // A moved file is in one of the two, and whole.
    return !existsSync(left) && !existsSync(right);
  });
  expect(missing).toEqual([]);
  const twice = readdirSync(join(copy, "files/a")).filter((name) => existsSync(join(copy, "files/z", name)));
  expect(twice).toEqual([]);

  // The next process repairs the rest: each ticket is finished once, and sends its note once.
  for (let taken = await box.take(); taken !== undefined; taken = await box.take()) {
    await taken.send(sent, { "note.txt": taken.id }, { key: `sent ${taken.id}` });
    await taken.ack();
  }
  // A ticket that won its key and was not moved to the queue yet is moved by the next worker of its box.
  for (let taken = await sent.take(); taken !== undefined; taken = await sent.take()) await taken.ack();
  const notes = new Map<string, number>();
  for (const state of ["incoming", "delayed", "processing", "archive"] as const)
    for await (const { key } of all(sent, state)) notes.set(key, (notes.get(key) ?? 0) + 1);
  for (const key of out) expect({ key, count: notes.get(key) }).toEqual({ key, count: 1 });
  for await (const { id } of all(box, "archive")) {
    const key = `sent ${id}`;
    expect({ key, count: notes.get(key) }).toEqual({ key, count: 1 });
  }
  return await events.head();
}

type Box = Awaited<ReturnType<Awaited<ReturnType<typeof openStore>>["handoff"]>>;

async function* all(
  box: Box,
  state: Parameters<Box["list"]>[0],
): AsyncGenerator<{ readonly id: string; readonly key: string }> {
  for await (const ticket of box.list(state)) yield ticket;
}
