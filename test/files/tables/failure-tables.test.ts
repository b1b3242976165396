// Every row of the failure tables on the simulated disk, with a crash exactly there.
import { beforeAll, describe, it } from "vitest";
import { loadSqlite } from "../../../src/files/engine/sqlite.ts";
import { local } from "../../sites/world.ts";
import { playRow } from "./play.ts";
import { races } from "./races.ts";
import { rows, titleOf } from "./rows.ts";
import { onSimulatedDisk } from "./simulated-arena.ts";

// Not a call of the simulated world.
beforeAll(loadSqlite);

describe("on a simulated disk", () => {
  it.each(rows.map((row) => [titleOf(row), row] as const))("%s", async (_title, row) => {
    await onSimulatedDisk(local, (arena) => playRow(arena, row));
  });

  it.each(races.map(({ title, play }) => [title, play] as const))("%s", async (_title, play) => {
    await onSimulatedDisk(local, play);
  });
});
