// Processes put, delete, remove, tag, list and read one key at the same time, while the versioning of
// its bucket is suspended and enabled: what each was told could have been told by a key that does one
// thing at a time.
import { describe, it } from "vitest";
import { Chance } from "../../../harness/processes/chance.ts";
import { KeyWorker, type KeyOperation } from "../../../harness/processes/objects/key-work.ts";
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import type { Versioning } from "../../../src/objects/model/object.ts";
import { judgeKey, type SettingChange } from "../key-judge.ts";
import { smallInline, type StoreSiteMaker } from "../object-sites.ts";

const key = "shared";
const processes = 3;
const operationsEach = 14;

export function describeLinearizable(name: string, make: StoreSiteMaker): void {
  describe(`on ${name}`, () => {
    it.each(["enabled", "suspended", "off"] as const)(
      "a key in a bucket with versioning %s is linearizable, even if versioning changes",
      async (versioning: Versioning) => {
        for (let seed = 1; seed <= 3; seed++) {
          const site = await make();
          const maker = await site.open();
          let time = 0;
          const now = (): number => time++;
          const settings: SettingChange[] = [];
          const bucket = await maker.createBucket("photos", {
            versioning: versioning === "suspended" ? "enabled" : versioning,
          });
          if (versioning === "suspended") await bucket.setVersioning("suspended");
          settings.push({ versioning, calledAt: now(), returnedAt: now() });
          const operations: KeyOperation[] = [];
          const onReturn = (operation: KeyOperation): void => void operations.push(operation);
          const chance = new Chance(seed);
          const workers: KeyWorker[] = [];
          for (let index = 0; index < processes; index++) {
            const own = await (await site.open(smallInline)).bucket("photos");
            workers.push(new KeyWorker({ bucket: own, key, name: "abc"[index] ?? "", chance, now, onReturn }));
          }
          const work = workers.map(async (worker) => {
            for (let count = 0; count < operationsEach; count++) await worker.doNext();
          });
          // The last seed leaves the setting as it is.
          if (seed < 3) await changeSettings(bucket, settings, versioning, now);
          await Promise.all(work);
          await readAtEnd(bucket, now, operations);
          judgeKey(operations, settings);
        }
      },
    );
  });
}

async function changeSettings(
  bucket: Bucket,
  settings: SettingChange[],
  first: Versioning,
  now: () => number,
): Promise<void> {
  for (let count = 0; count < 3; count++) {
    const before = settings.at(-1)?.versioning ?? first;
    const versioning = before === "enabled" ? "suspended" : "enabled";
    const calledAt = now();
    await bucket.setVersioning(versioning);
    settings.push({ versioning, calledAt, returnedAt: now() });
  }
}

/** What is left, told by a process that comes last. */
async function readAtEnd(bucket: Bucket, now: () => number, operations: KeyOperation[]): Promise<void> {
  const calledAt = now();
  const found: string[] = [];
  for await (const { deleteMarker, metadata } of bucket.versions({ key }))
    found.push(deleteMarker ? "(marker)" : (metadata.body ?? ""));
  operations.push({ process: "end", input: { kind: "list versions" }, output: { found }, calledAt, returnedAt: now() });
}
