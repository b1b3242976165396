// A directory that Windows does not remove because another program has it open.
import { expect, it } from "vitest";
import type { Box } from "../../src/handoff/box/box.ts";
import { openBox } from "../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../src/handoff/handoff.ts";
import { returnDeadTickets } from "../../src/handoff/recover/return-tickets.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { createSimulation } from "../../src/testing/sim/simulation.ts";

it("an empty directory that is in use ends neither a worker nor the next one, and goes later", async () => {
  let isBusy = true;
  const simulation = createSimulation();
  const open = async (name: string): Promise<{ readonly box: Box; readonly handoff: BoxHandoff }> => {
    const ports = simulation.ports(name);
    const rmdir: Disk["rmdir"] = async (path) => {
      if (isBusy && /\/(processing|staging)\//.test(path)) throw diskError("EBUSY", "rmdir", path);
      await ports.disk.rmdir(path);
    };
    const disk: Disk = new Proxy(ports.disk, {
      get: (target, key: keyof Disk) => {
        if (key === "rmdir") return rmdir;
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    const opened = await openBox({ ...ports, disk }, "/box", { isSynced: true });
    const handoff = new BoxHandoff(opened, {}, async () => {
      throw new Error("no folder is opened");
    });
    return { box: opened.box, handoff };
  };
  const { disk } = simulation.ports("auditor");
  await disk.mkdir("/box");
  const { handoff: ada } = await open("ada");
  await ada.publish({ "a.txt": "1" });
  await (await ada.take())?.ack();
  await ada.close();
  const left = async (): Promise<string[]> =>
    (await Promise.all(["processing", "staging"].map((name) => disk.list(`/box/${name}`).catch(() => [])))).flat();
  expect(await left()).not.toEqual([]);
  const { box, handoff: bob } = await open("bob");
  await returnDeadTickets(box);
  isBusy = false;
  await returnDeadTickets(box);
  await bob.close();
  expect(await left()).toEqual([]);
});
