// The algorithm of known file system gateways, for comparison: it copies the current object away, then overwrites it.
import { replace, putIfAbsent } from "../../../src/durable/publish/publish.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { keyStorageOf } from "./key-actors.ts";

const current = "/object";
const versions = "/versions";

/** Reads the current object, archives it under its id, and replaces it by the new one. */
export function archivingWriter(): Actor {
  return actor({
    prepare: async ({ ports, name }) => keyStorageOf(ports, name, undefined).staging,
    run: async ({ ports, name, note }, staging) => {
      const old = await ports.disk.readFile(current, 100);
      await putIfAbsent(staging, `${versions}/${Buffer.from(old).toString()}`, old);
      await replace(staging, current, Buffer.from(name));
      note("acknowledged", name);
    },
  });
}

async function allAreKept({ disk }: Ports, facts: readonly Fact[]): Promise<void> {
  const kept = [...(await disk.list(versions)), Buffer.from(await disk.readFile(current, 100)).toString()];
  for (const id of valuesOf<string>(facts, "acknowledged"))
    mustHold(kept.includes(id), `version ${id} was acknowledged and is lost: there are ${kept.join(", ")}`);
}

/** Two puts run at the same time, in a bucket that keeps versions. */
export function archivingScenario(): Scenario {
  return {
    name: "gateway: two puts that archive and overwrite",
    about: "Both puts archive the same version, and the second overwrites the first.",
    setup: async ({ disk }) => {
      for (const path of ["/temp", "/temp/ada", "/temp/bob", versions]) await disk.mkdir(path);
      await disk.createFile(current, Buffer.from("old"), { sync: true });
    },
    actors: { ada: archivingWriter(), bob: archivingWriter() },
    audit: allAreKept,
  };
}
