// The algorithm of the known file system gateways, for comparison: the current object is copied
// away, then overwritten.
import { replace, putIfAbsent } from "../../../durable/publish/publish.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";
import { placeOf } from "./key-actors.ts";

const current = "/object";
const versions = "/versions";

/** Reads the current object, archives it under its id, and puts the new one in its place. */
export function archivingWriter(): Actor {
  return actor({
    prepare: async ({ ports, name }) => placeOf(ports, name, undefined).staging,
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

/** Two puts at the same time, in a bucket that keeps versions. */
export function archivingScenario(): Scenario {
  return {
    name: "gateway: two puts that archive and overwrite",
    about: "Both archive the same version, and the second overwrites the first.",
    setup: async ({ disk }) => {
      for (const path of ["/temp", "/temp/ada", "/temp/bob", versions]) await disk.mkdir(path);
      await disk.createFile(current, Buffer.from("old"), { sync: true });
    },
    actors: { ada: archivingWriter(), bob: archivingWriter() },
    audit: allAreKept,
  };
}
