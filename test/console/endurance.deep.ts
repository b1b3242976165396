// A console that stays open beside processes that work, are killed and stopped leaves no trace, and costs almost nothing
// when nothing happens. The hour is `npm run test:console`.
import { expect, test } from "vitest";
import { endure } from "../../harness/endurance/endurance.ts";

const isLinux = process.platform === "linux";

test.skipIf(!isLinux)(
  "an open console takes no lock, joins no ground and writes nothing, while others work and when nothing happens",
  async () => {
    const found = await endure({ stormSeconds: 8, quietSeconds: 5, processes: 4, seed: 1 });
    expect(found).toMatchObject({
      openForWriting: [],
      osLocks: [],
      asHolder: [],
      complaints: [],
      changed: [],
      endedWith: undefined,
    });
    expect(found.kills).toBeGreaterThan(0);
    expect(found.operations).toBeGreaterThan(0);
    expect(found.answers).toBeGreaterThan(0);
  },
);

test.skipIf(!isLinux)("the same audit finds the traces of an action", async () => {
  const found = await endure({ stormSeconds: 2, quietSeconds: 1, processes: 2, seed: 2, acts: true });
  expect(found.changed.some((name) => name.startsWith("events/console/"))).toBe(true);
  expect(found.changed).toContain("handoff/labels/pause.json");
});
