// Scenarios of a repair that sets a damaged entry aside. Wherever the repair ends, the damaged entry is in its slot or
// in `aside/`, and every other version can be read.
import { listIfThere } from "../../../src/durable/publish/directory.ts";
import type { OpenBucket } from "../../../src/objects/bucket/open-bucket.ts";
import { SlotRepair } from "../../../src/objects/collect/set-aside.ts";
import { listKey, readVersions, versionsOf } from "../../../src/objects/listing/list-page.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { keyName, makeWorld, openBucketOf, putText, readText } from "./object-world.ts";

/** The repair under test: the real one, or a known-wrong variant. */
export type RepairClass = typeof SlotRepair;

/** The damaged place. The id and the kind of the entry stay legible. */
const flipped = '"atMs"';

/** Makes two versions, and damages the record of the first or of the last. */
async function damagedWorld(ports: Ports, isNewest: boolean): Promise<void> {
  await makeWorld(ports, { versioning: "enabled", before: ["one", "two"], isInline: true });
  const bucket = await openBucketOf(ports);
  const path = await slotPath(bucket, isNewest ? 2 : 1);
  const bytes = Buffer.from(await ports.disk.readFile(path, 10_000));
  bytes[bytes.indexOf(flipped)] = 0;
  await ports.disk.unlink(path);
  await ports.disk.createFile(path, bytes, { sync: true });
}

async function slotPath(bucket: OpenBucket, number: number): Promise<string> {
  const path = await bucket.useKey(keyName, async ({ chain }) => {
    const head = await chain.findHead();
    return head && chain.names.slotPath(head.incarnation, number);
  });
  return path ?? "";
}

function repairer(Repair: RepairClass): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const bucket = await openBucketOf(ports);
      return { bucket, slots: (await readVersions(bucket, keyName)).unread };
    },
    run: async ({ note }, { bucket, slots }) => {
      for (const { slot } of await new Repair(bucket).setAside(keyName, slots)) note("set aside", slot);
    },
  });
}

function putter(): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucketOf(ports),
    run: async ({ note }, bucket) => {
      await putText(bucket, "after", { isInline: true });
      note("put", "after");
    },
  });
}

/** Reads the undamaged version. */
function reader(): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const bucket = await openBucketOf(ports);
      return { bucket, versionId: (await listKey(bucket, keyName)).versions[0]?.versionId };
    },
    run: async ({ note }, { bucket, versionId }) => note("read", await readText(bucket, versionId)),
  });
}

/** True if a copy of the damaged entry lies in `aside/`. */
async function isAside(bucket: OpenBucket): Promise<boolean> {
  const { disk } = bucket.storage;
  const { aside } = bucket.layout;
  for (const name of await listIfThere(disk, aside)) {
    const bytes = Buffer.from(await disk.readFile(`${aside}/${name}`, 10_000));
    if (bytes.includes(`\u0000${flipped.slice(1)}`)) return true;
  }
  return false;
}

function repairScenario(
  Repair: RepairClass,
  isNewest: boolean,
  scenario: Pick<Scenario, "name" | "about"> & Partial<Scenario>,
): Scenario {
  const whole = isNewest ? "one" : "two";
  return {
    setup: (ports) => damagedWorld(ports, isNewest),
    check: (facts) => {
      for (const text of valuesOf(facts, "read")) mustHold(text === whole, `a reader got ${String(text)}`);
    },
    audit: async (ports: Ports, facts: readonly Fact[]) => {
      const bucket = await openBucketOf(ports);
      const { unread } = await readVersions(bucket, keyName);
      mustHold(unread.length > 0 || (await isAside(bucket)), "a damaged entry was removed, and no copy of it is there");
      // The next repair continues where this one ended.
      await new SlotRepair(bucket).setAside(keyName, unread);
      mustHold((await readVersions(bucket, keyName)).unread.length === 0, "a second repair leaves a damaged entry");
      mustHold(await isAside(bucket), "no copy of the damaged entry is there");
      const texts: string[] = [];
      for (const { versionId } of await versionsOf(bucket, keyName)) texts.push(await readText(bucket, versionId));
      const wanted = [...valuesOf<string>(facts, "put"), whole];
      for (const text of wanted) mustHold(texts.includes(text), `the version ${text} is gone: ${texts.join()}`);
      mustHold((await readText(bucket)) === texts[0], "the current version is not the newest one");
    },
    actors: { rep: repairer(Repair) },
    ...scenario,
  };
}

export function repairScenarios(Repair: RepairClass = SlotRepair): Scenario[] {
  return [
    repairScenario(Repair, true, {
      name: "repair: a damaged entry beside a put",
      about: "The put is acknowledged and can be read, wherever the repair is killed.",
      size: "large",
      actors: { rep: repairer(Repair), ada: putter() },
      killsMax: 1,
      mortal: ["rep"],
    }),
    repairScenario(Repair, false, {
      name: "repair: a damaged entry beside a reader",
      about: "The other version can be read at every moment.",
      size: "large",
      actors: { rep: repairer(Repair), red: reader() },
      killsMax: 1,
      mortal: ["rep"],
    }),
    repairScenario(Repair, false, {
      name: "repair: a damaged entry, killed at any step",
      about: "The next repair continues where the killed one ended.",
      killsMax: 1,
    }),
    repairScenario(Repair, true, {
      name: "repair: a damaged entry, power cuts",
      about: "After each power cut the damaged entry is in its place, or a copy of it is in `aside/`.",
      profile: "weak",
      powerCuts: true,
    }),
  ];
}
