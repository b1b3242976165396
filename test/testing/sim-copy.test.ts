// A copy of a simulated server: the ground on which the schedules of one scenario begin.
import { expect, it } from "vitest";
import type { Disk } from "../../src/ports/disk.ts";
import { createSimulation } from "../../src/testing/sim/simulation.ts";
import { SimServer, type ServerOptions } from "../../src/testing/sim/server.ts";
import { bytesOf, textOf } from "./sim-bench.ts";

const options: ServerOptions = {
  profile: "weak",
  quirks: {},
  volume: { kind: "local", type: "simulated", mountOptions: [] },
  now: () => 2_000_000,
};

async function newGround(): Promise<{ server: SimServer; disk: Disk }> {
  const simulation = createSimulation({ profile: "weak" });
  const { disk } = simulation.ports("setup");
  await disk.mkdir("/d");
  await disk.createFile("/d/gone", bytesOf("gone"), { sync: false });
  await disk.createFile("/d/a", bytesOf("content"), { sync: false });
  await disk.unlink("/d/gone");
  await disk.link("/d/a", "/b");
  return { server: simulation.server, disk };
}

it("has the same names, contents, stamps and hard links, and all of it is durable", async () => {
  const { server } = await newGround();
  const copy = server.copy(options);
  expect(copy.fingerprint(false)).toBe(server.fingerprint(false));
  expect(copy.find("/b")).toBe(copy.find("/d/a"));
  expect(copy.crashImageCount()).toBe(1);
  expect(copy.crashImage(0).find("/d/a")).toMatchObject({ kind: "file", links: 2 });
  expect(server.crashImageCount()).toBeGreaterThan(1);
});

it("gives the next file the number that the first server would give it", async () => {
  const { server } = await newGround();
  const numbers = [server, server.copy(options)].map((each) => each.create(each.entry("/new", "create"), "create").ino);
  expect(numbers[1]).toBe(numbers[0]);
});

it("remembers which files a process has told apart", async () => {
  const { server, disk } = await newGround();
  const before = server.copy(options).fingerprint(false);
  await disk.stat("/d/a");
  expect(server.copy(options).fingerprint(false)).toBe(server.fingerprint(false));
  expect(server.fingerprint(false)).not.toBe(before);
});

it("goes its own way: neither sees what becomes of the other", async () => {
  const { server } = await newGround();
  const copy = server.copy(options);
  const whole = server.fingerprint(true);
  const file = copy.tree.file(copy.entry("/b", "open"), "open");
  copy.write(file, 0, bytesOf("changed"));
  copy.unlink(copy.entry("/d/a", "unlink"));
  copy.rmdir(copy.entry("/d", "rmdir"));
  expect(server.fingerprint(true)).toBe(whole);
  server.unlink(server.entry("/b", "unlink"));
  expect(textOf(file.bytes)).toBe("changed");
  expect(file.links).toBe(1);
});

it("is not made while a file is open", async () => {
  const { server, disk } = await newGround();
  const file = await disk.open("/b", "read");
  expect(() => server.copy(options)).toThrow("open files");
  await file.close();
  expect(server.copy(options)).toBeInstanceOf(SimServer);
});
