// A disk that stays full: the answer to an append holds, also where no space is left to record the
// failure.
import { describe, expect, it } from "vitest";
import { refusingPorts, type RefusingPorts } from "../durable/refusing-ports.ts";
import { World } from "../sites/world.ts";
import { listOf, openOn } from "../sites/event-logs.ts";
import { letTimePass } from "../sites/sites.ts";

const directory = "/log";
/** More than the room behind the lines. */
const large = "x".repeat(3000);

async function makeSite(): Promise<{ readonly world: World; readonly ports: RefusingPorts }> {
  const world = new World();
  letTimePass(world);
  const ports = refusingPorts(world.ports("ada"), "ENOSPC");
  ports.allow();
  return { world, ports };
}

describe("a disk that stays full", () => {
  it("fails appends with DISK_FULL, and none of them ever appears", async () => {
    const { world, ports } = await makeSite();
    const ada = await openOn(ports, directory);
    await ada.append({ type: "Sold", data: "first" });
    ports.forbid();
    const data = [1, 2, 3].map((number) => `${number}${large}`);
    const answers = await Promise.allSettled(data.map((each) => ada.append({ type: "Sold", data: each })));
    expect(answers.map((answer) => answer.status === "rejected" && (answer.reason as { code: string }).code)).toEqual([
      "DISK_FULL",
      "DISK_FULL",
      "DISK_FULL",
    ]);
    // For other processes, and after a restart.
    const bob = await openOn(world.ports("bob"), directory);
    const cyd = await openOn(world.ports("cyd", "the same machine, started again"), directory);
    for (const store of [ada, bob, cyd])
      expect((await listOf(store.read())).map((event) => event.data)).toEqual(["first"]);
    ports.allow();
    expect(await ada.append({ type: "Sold", data: "second" })).toMatchObject({ first: 2 });
    for (const store of [ada, bob, cyd])
      expect((await listOf(store.read())).map((event) => event.data)).toEqual(["first", "second"]);
    expect(await bob.verify()).toMatchObject({ ok: true, checked: 2 });
  });
});
