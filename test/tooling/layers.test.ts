// The table of layers says no where it should, and yes where it should: a rule that matches nothing
// looks like a clean tree.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { findForbiddenImports, layers } from "./layers.ts";

const source = fileURLToPath(new URL("../../src", import.meta.url));

test.each([".", "../harness"])("imports of the files below %s point down only", (folder) => {
  const files = readdirSync(join(source, folder), { recursive: true, encoding: "utf8" })
    .map((path) => posix.join(folder, path.replaceAll("\\", "/")))
    .filter((path) => path.endsWith(".ts"));
  expect(files).not.toEqual([]);
  expect(files.flatMap((path) => findForbiddenImports(path, readFileSync(join(source, path), "utf8")))).toEqual([]);
});

test("every room in the table exists", () => {
  const rooms = layers.flatMap(({ room, knows }) => [room, ...knows]);
  expect(rooms.filter((room) => !existsSync(join(source, room)))).toEqual([]);
});

type Import = readonly [title: string, path: string, from: string];

const refused: readonly Import[] = [
  ["errors importing a port", "errors.ts", "./ports/disk.ts"],
  ["a port interface importing a real port", "ports/disk.ts", "./node/disk.ts"],
  ["a port interface importing node:fs", "ports/watch.ts", "node:fs"],
  ["a port interface importing format", "ports/clock.ts", "../format/record.ts"],
  ["the memory disk importing a real port", "ports/memory/disk.ts", "../node/disk.ts"],
  ["the memory disk importing node:fs", "ports/memory/tree.ts", "node:fs"],
  ["a real port importing durable", "ports/node/disk.ts", "../../durable/chain-slot.ts"],
  ["a real port importing a package that is not listed", "ports/node/clock.ts", "left-pad"],
  ["format importing durable", "format/record.ts", "../durable/publish.ts"],
  ["format importing a port", "format/id.ts", "../ports/random.ts"],
  ["format importing node:fs", "format/name.ts", "node:fs"],
  ["durable importing a real port", "durable/publish.ts", "../ports/node/host.ts"],
  ["durable importing the memory disk", "durable/gate.ts", "../ports/memory/disk.ts"],
  ["durable importing locks", "durable/chain.ts", "../locks/table.ts"],
  ["durable importing the store", "durable/store-user.ts", "../store.ts"],
  ["durable importing the index above it", "durable/index-user.ts", "../index.ts"],
  ["durable importing its own entry point", "durable/entry-user.ts", "./index.ts"],
  ["durable importing testing", "durable/testing-user.ts", "../testing/index.ts"],
  ["durable importing node:fs", "durable/fs-user.ts", "node:fs"],
  ["durable importing node:fs/promises", "durable/fs-promises-user.ts", "node:fs/promises"],
  ["durable importing fs without its prefix", "durable/bare-fs-user.ts", "fs"],
  ["durable importing node:timers/promises", "durable/timers-user.ts", "node:timers/promises"],
  ["durable importing node:worker_threads", "durable/worker-user.ts", "node:worker_threads"],
  ["durable importing node:child_process", "durable/child-user.ts", "node:child_process"],
  ["durable importing fs-native-extensions", "durable/native-user.ts", "fs-native-extensions"],
  ["a folder inside durable importing events", "durable/parts/part.ts", "../../events/log.ts"],
  ["locks importing events", "locks/table.ts", "../events/log.ts"],
  ["locks importing doctor", "locks/doctor-user.ts", "../doctor/probe.ts"],
  ["locks importing durable by its entry point", "locks/entry-user.ts", "../durable/index.ts"],
  ["doctor importing locks", "doctor/probe.ts", "../locks/table.ts"],
  ["doctor importing a real port", "doctor/fs-probe.ts", "../ports/node/disk.ts"],
  ["events importing handoff", "events/log.ts", "../handoff/ticket.ts"],
  ["handoff importing objects", "handoff/box.ts", "../objects/version.ts"],
  ["deliveries importing an engine", "handoff/deliver/feed.ts", "../box/box.ts"],
  ["the model of a hand-off importing an engine", "handoff/model/handoff.ts", "../consume/claim.ts"],
  ["objects importing files", "objects/bucket.ts", "../files/move.ts"],
  ["files importing events", "files/tree.ts", "../events/reader.ts"],
  ["a capability importing a real port", "events/segment.ts", "../ports/node/disk.ts"],
  ["an entry point importing a real port past ports.ts", "durable/index.ts", "../ports/node/disk.ts"],
  ["an entry point importing a room above its own", "locks/index.ts", "../events/log.ts"],
  ["an entry point importing testing", "events/index.ts", "../testing/index.ts"],
  ["the store importing the command line", "store.ts", "./cli/main.ts"],
  ["the index importing testing", "index.ts", "./testing/index.ts"],
  ["the command line importing the inside of durable", "cli/main.ts", "../durable/chain.ts"],
  ["a command importing the inside of durable", "cli/commands/lock.ts", "../../durable/chain.ts"],
  ["the command line importing errors past the index", "cli/output.ts", "../errors.ts"],
  ["the command line importing testing", "cli/bench.ts", "../testing/index.ts"],
  ["the command line importing a real port", "cli/disk.ts", "../ports/node/ports.ts"],
  ["the command line importing node:fs", "cli/commands/init.ts", "node:fs"],
  ["the command line importing node:fs/promises", "cli/commands/read.ts", "node:fs/promises"],
  ["the command line importing the package by its name", "cli/self.ts", "holdfast/testing"],
  ["the S3 front importing the inside of objects", "s3/router.ts", "../objects/bucket.ts"],
  ["testing importing a real port", "testing/sim/disk.ts", "../../ports/node/disk.ts"],
  ["testing importing a capability", "testing/explorer/world.ts", "../../events/log.ts"],
  ["testing importing node:fs", "testing/explorer/trace.ts", "node:fs"],
  ["testing importing the harness", "testing/index.ts", "../../harness/rooms/index.ts"],
  ["durable importing the harness", "durable/harness-user.ts", "../../harness/main.ts"],
  ["the harness importing the command line", "../harness/main.ts", "../src/cli/main.ts"],
  ["the harness importing the index", "../harness/rooms/index.ts", "../../src/index.ts"],
  ["the harness importing the package by its name", "../harness/main.ts", "holdfast/testing"],
];

const accepted: readonly Import[] = [
  ["a port interface importing errors", "ports/host.ts", "../errors.ts"],
  ["the memory disk importing a port interface", "ports/memory/ok.ts", "../disk.ts"],
  ["a real port importing node:fs/promises", "ports/node/fs.ts", "node:fs/promises"],
  ["a real port importing fs-native-extensions", "ports/node/os-lock.ts", "fs-native-extensions"],
  ["format importing errors", "format/version.ts", "../errors.ts"],
  ["durable importing a port interface", "durable/ok-port.ts", "../ports/disk.ts"],
  ["durable importing format", "durable/ok-format.ts", "../format/record.ts"],
  ["durable importing a folder inside itself", "durable/ok-folder.ts", "./parts/ok.ts"],
  ["a folder inside durable importing its room", "durable/parts/ok.ts", "../ground.ts"],
  ["a folder inside durable importing a port interface", "durable/parts/port.ts", "../../ports/disk.ts"],
  ["doctor importing durable", "doctor/ok.ts", "../durable/publish.ts"],
  ["the entry point of doctor binding the real ports", "doctor/index.ts", "../ports/node/ports.ts"],
  ["locks importing durable", "locks/ok.ts", "../durable/publish.ts"],
  ["events importing locks", "events/ok.ts", "../locks/path-locks.ts"],
  ["deliveries importing the model", "handoff/deliver/ok.ts", "../model/manifest.ts"],
  ["files importing handoff", "files/ok.ts", "../handoff/box.ts"],
  ["the entry point of files binding the real ports", "files/index.ts", "../ports/node/ports.ts"],
  ["the entry point of handoff binding the memory disk", "handoff/index.ts", "../ports/memory/disk.ts"],
  ["the command line importing the index", "cli/ok.ts", "../index.ts"],
  ["the command line importing a subpath", "cli/ok-subpath.ts", "../durable/index.ts"],
  ["the command line importing commander", "cli/ok-commander.ts", "commander"],
  ["the command line starting a child process", "cli/ok-child.ts", "node:child_process"],
  ["a command importing the index", "cli/commands/ok.ts", "../../index.ts"],
  ["a command importing a subpath", "cli/commands/ok-subpath.ts", "../../locks/index.ts"],
  ["a command importing its front", "cli/commands/ok-front.ts", "../exit-codes.ts"],
  ["testing importing a port interface", "testing/sim/ok.ts", "../../ports/disk.ts"],
  ["testing importing the memory disk", "testing/sim/ok-memory.ts", "../../ports/memory/tree.ts"],
  ["a scenario importing the inside of durable", "../harness/scenarios/ok.ts", "../../src/durable/chain.ts"],
  ["a scenario importing the explorer", "../harness/scenarios/ok.ts", "../../src/testing/explorer/explore.ts"],
  ["a scenario importing another one", "../harness/scenarios/ok.ts", "./durable/chain.ts"],
  ["the harness importing node:fs", "../harness/torture/ok.ts", "node:fs"],
  ["a test importing anything", "durable/ok-import.test.ts", "../ports/node/disk.ts"],
];

describe("the layers refuse", () => {
  test.each(refused)("%s", (_title, path, from) => {
    expect(findForbiddenImports(path, `export * from "${from}";`)).toEqual([`${path} imports ${from}.`]);
  });

  test.each([
    ["only a type of a real port", `export type { NodeDisk } from "../ports/node/ports.ts";`],
    ["a module when it is called", `export const load = () => import("node:fs");`],
    ["a type by an expression", `export type Log = import("../events/log.ts").Log;`],
  ])("durable importing %s", (_title, code) => {
    expect(findForbiddenImports("durable/gate.ts", code)).toHaveLength(1);
  });

  test("a file in a room that is not in the table", () => {
    expect(findForbiddenImports("attic/box.ts", "")).toHaveLength(1);
  });
});

describe("the layers accept", () => {
  test.each(accepted)("%s", (_title, path, from) => {
    expect(findForbiddenImports(path, `export * from "${from}";`)).toEqual([]);
  });
});
