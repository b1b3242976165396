// Programs that open a folder, do little, and close it or die leave few files behind: their number
// depends on living processes, not on all that ever ran. Counted in memory; with smaller numbers
// also on a real disk.
import { expect, it } from "vitest";
import { ensureDirectory } from "../../src/durable/publish/directory.ts";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { Checkpoints } from "../../src/part/progress/checkpoints.ts";
import { encodeContent, encodeLine, tipAfter } from "../../src/events/log/format/line.ts";
import { LogFiles } from "../../src/events/log/log-files.ts";
import { SharePublisher } from "../../src/events/log/publish/share-publisher.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { makeScratch } from "../sites/scratch.ts";

const times = 10_000;
/** Far fewer than were ever made; counted often enough to see the maximum. */
const looksEvery = 250;

async function memoryPorts(): Promise<Ports> {
  return createMemoryPorts(await openNodePorts(makeScratch()));
}

async function countFiles(disk: Disk, path: string): Promise<number> {
  if ((await disk.stat(path)).kind !== "directory") return 1;
  let files = 0;
  for (const name of await disk.list(path)) files += await countFiles(disk, `${path}/${name}`);
  return files;
}

/** A writer that opens the log, publishes once, and closes: two slots of the chain of tenures. */
async function publishOnce(ground: Ground, directory: string): Promise<void> {
  const publisher = await SharePublisher.open(new LogFiles(ground, directory, "log", { isSynced: true }));
  const session = await publisher.begin();
  const { end } = session;
  const events = [{ type: "Sold", tags: [], id: "a" }];
  const line = encodeLine(encodeContent({ events, payload: ["1"] }), end.position + 1, "2026-11-16T00:00:00Z", end.crc);
  await session.publish(Buffer.from(line.text), tipAfter(end, { events }, line), true);
  await session.close();
  await publisher.close();
}

/** A consumer that opens its checkpoints, takes over, and saves one: two slots of its chain. */
async function consumeOnce(ground: Ground, directory: string, fence: number): Promise<void> {
  const checkpoints = await Checkpoints.open(ground, directory, {
    ground: ground.id,
    sequence: {
      findMark: async (position) => String(position).padStart(8, "0"),
      rewound: (position) => new Error(`rewound at ${position}`),
      mayLag: false,
    },
  });
  const leased = await checkpoints.take(fence);
  expect(await leased?.save(fence)).toBe(true);
  await checkpoints.settled();
}

/** The highest number of files at one time. */
async function mostFiles(disk: Disk, path: string, count: number, work: (time: number) => Promise<void>) {
  let most = 0;
  for (let time = 1; time <= count; time++) {
    await work(time);
    if (time % looksEvery === 0 || time === count) most = Math.max(most, await countFiles(disk, path));
  }
  return most;
}

it("writers of a shared log that append once and close leave few tenures, after 3000 of them", async () => {
  const ports = await memoryPorts();
  await ensureDirectory(ports.disk, "/log/segments");
  const ground = await Ground.open(ports, "/ground");
  const most = await mostFiles(ports.disk, "/log/tenures", 3000, () => publishOnce(ground, "/log"));
  // Of 6,000 slots: those of three epochs at most, and a record for each of the 24 epochs.
  expect(most).toBeLessThan(1000);
  await ground.close();
}, 120_000);

it(`consumers that do little and end leave few checkpoints, after ${times} of them`, async () => {
  const ports = await memoryPorts();
  const ground = await Ground.open(ports, "/ground");
  const most = await mostFiles(ports.disk, "/consumer", times, (time) => consumeOnce(ground, "/consumer", time));
  expect(most).toBeLessThan(1000);
  await ground.close();
}, 120_000);

it(`the deaths of ${times} holders are forgotten, each by the next sweep but one`, async () => {
  const ports = await memoryPorts();
  const most = await mostFiles(ports.disk, "/ground", times, async () => {
    const ground = await Ground.open(ports, "/ground");
    await ground.sweep();
    // As the kernel does with the files of a process that was killed.
    await (await ground.session()).abandon();
  });
  // The ground's own record, a record and a heartbeat of the last one, and the record of one death.
  expect(most).toBe(4);
}, 120_000);

it("a ground with thousands of dead holders is clean after a few short sweeps", async () => {
  const ports = await memoryPorts();
  const [ground, old] = [await Ground.open(ports, "/ground"), await Ground.open(ports, "/ground")];
  const { holder } = await old.session();
  await old.close();
  for (let count = 0; count < 2500; count++) {
    const id = holder.id.slice(0, -4) + String(count).padStart(4, "0");
    await ports.disk.createFile(`/ground/holders/${id}.dead`, Buffer.from(JSON.stringify({})), { sync: false });
  }
  const left: number[] = [];
  for (let sweep = 0; sweep < 3; sweep++) {
    await ground.sweep();
    left.push((await ports.disk.list("/ground/holders")).filter((name) => name.endsWith(".dead")).length);
  }
  expect(left).toEqual([1500, 500, 0]);
  await ground.close();
});

it("the same holds on a real disk", async () => {
  const directory = makeScratch();
  const ports = await openNodePorts(directory);
  await ensureDirectory(ports.disk, `${directory}/log/segments`);
  const ground = await Ground.open(ports, `${directory}/ground`);
  const most = await mostFiles(ports.disk, `${directory}/consumer`, 150, (time) =>
    consumeOnce(ground, `${directory}/consumer`, time),
  );
  // Of 300 slots in epochs of 64: those of three epochs at most, and five records.
  expect(most).toBeLessThan(3 * 64 + 3 + 5 + 1);
  await ground.close();
}, 120_000);
