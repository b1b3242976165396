// The failure tables of the plainest operations on the simulated disk, with a crash exactly there. The deep run has all.
import { beforeAll, describe, it } from "vitest";
import { loadSqlite } from "../../../src/files/engine/sqlite.ts";
import { local } from "../../sites/world.ts";
import { playRow } from "./play.ts";
import { rows, titleOf } from "./rows.ts";
import { onSimulatedDisk } from "./simulated-arena.ts";

// Not a call of the simulated world.
beforeAll(loadSqlite);

const plainest = ["writes a file", "removes a file", "moves a file"];

describe("on a simulated disk", () => {
  const chosen = rows.filter(({ work }) => plainest.includes(work));
  it.each(chosen.map((row) => [titleOf(row), row] as const))("%s", async (_title, row) => {
    await onSimulatedDisk(local, (arena) => playRow(arena, row));
  });
});
