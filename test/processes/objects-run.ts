// Real processes that work on the same keys, some of them killed, and what must hold of every key.
import { expect } from "vitest";
import { openObjects } from "../../src/objects/index.ts";
import { Chance } from "../../harness/processes/chance.ts";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import { Crew } from "../../harness/processes/crew.ts";
import type { KeyChildOrders, KeyChildReport } from "../../harness/processes/objects/child.ts";
import type { KeyOperation } from "../../harness/processes/objects/key-work.ts";
import { judgeKey, type SettingChange } from "../objects/key-judge.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";

export interface KeyRun {
  readonly processes: number;
  readonly keys: number;
  /** Of each process on each key. */
  readonly operations: number;
  /** How often a process is killed, at any moment, and started again. */
  readonly kills: number;
  /** How often the versioning of the bucket is suspended and enabled. */
  readonly changes: number;
  readonly seed: number;
}

const module = new URL("../../harness/processes/objects/child.ts", import.meta.url);
const now = (): number => Number(process.hrtime.bigint());

/** Rejects when a promise is broken; gives how many operations were judged. */
export async function runAndJudge(run: KeyRun): Promise<number> {
  const directory = makeScratch();
  await using store = await openObjects(directory);
  const bucket = await store.createBucket("photos", { versioning: "enabled" });
  // None begins with another: a listing by prefix shows one of them.
  const keys = Array.from({ length: run.keys }, (_, index) => `key ${index}.`);
  const names = Array.from({ length: run.processes }, (_, index) => `p${index}`);
  const settings: SettingChange[] = [{ versioning: "enabled", calledAt: now(), returnedAt: now() }];
  const crew = new Crew<KeyChildReport>({
    names,
    module: compiledModule(module),
    argsOf: (name) => {
      const { operations, seed } = run;
      const orders: KeyChildOrders = {
        ...{ directory, bucket: "photos", keys, name, operations, inlineMax: 16 },
        seed: seed * 1000 + names.indexOf(name),
      };
      return [JSON.stringify(orders)];
    },
  });
  const chance = new Chance(run.seed);
  await crew.run(async () => {
    for (let count = 0; count < run.kills; count++) {
      // Some operations apart, so that each kill hits another moment of the protocol.
      const heard = crew.history.length + Math.ceil(chance.between(1, 12));
      await until(() => crew.history.length >= heard || isDone(crew));
      const child = chance.pick(crew.children);
      await child?.kill();
      child?.start();
    }
    for (let count = 0; count < run.changes; count++) {
      const heard = crew.history.length + 8;
      await until(() => crew.history.length >= heard || isDone(crew));
      const versioning = settings.at(-1)?.versioning === "enabled" ? "suspended" : "enabled";
      const calledAt = now();
      await bucket.setVersioning(versioning);
      settings.push({ versioning, calledAt, returnedAt: now() });
    }
    await until(() => isDone(crew) || crew.failures.length > 0);
    expect(await crew.finish()).toEqual([]);
  });
  expect(crew.failures).toEqual([]);
  let judged = 0;
  for (const key of keys) {
    const operations = operationsOf(crew, key);
    const calledAt = now();
    const found: string[] = [];
    for await (const { deleteMarker, metadata } of bucket.versions({ key }))
      found.push(deleteMarker ? "(marker)" : (metadata.body ?? ""));
    const last = { input: { kind: "list versions" }, output: { found }, calledAt, returnedAt: now() } as const;
    judgeKey([...operations, { process: "end", ...last }], settings);
    judged += operations.length;
  }
  // Every version that is there can be read, and nothing lies about that none names.
  await store.collect();
  expect((await store.verify()).problems).toEqual([]);
  return judged;
}

/** Every child has done all keys since it was started last. */
function isDone({ children, history }: Crew<KeyChildReport>): boolean {
  return children.every(({ name, starts }) =>
    history.some(({ from, start, report }) => from === name && start === starts && report.kind === "done"),
  );
}

/** A call that was told and never answered may have happened. */
function operationsOf({ history }: Crew<KeyChildReport>, key: string): KeyOperation[] {
  const found = new Map<string, KeyOperation>();
  for (const { report } of history)
    if (report.kind !== "done" && report.key === key)
      found.set(`${report.operation.process} ${report.operation.calledAt}`, report.operation);
  return [...found.values()];
}
