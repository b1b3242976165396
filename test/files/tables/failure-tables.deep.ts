// Every row of the failure tables, with a crash exactly there: with real processes, one of which is killed, on a
// simulated disk, and on a simulated network mount.
import { beforeAll, describe, it } from "vitest";
import { loadSqlite } from "../../../src/files/engine/sqlite.ts";
import { local, nfs } from "../../sites/world.ts";
import { playRow } from "./play.ts";
import { makeProcessArena } from "./process-arena.ts";
import { races } from "./races.ts";
import { rows, titleOf } from "./rows.ts";
import { onSimulatedDisk } from "./simulated-arena.ts";

// Not a call of the simulated world.
beforeAll(loadSqlite);

const titledRows = rows.map((row) => [titleOf(row), row] as const);
const titledRaces = races.map(({ title, play }) => [title, play] as const);

describe("with real processes", () => {
  it.each(titledRows)("%s", async (_title, row) => {
    await playRow(await makeProcessArena(), row);
  });

  it.each(titledRaces)("%s", async (_title, play) => {
    await play(await makeProcessArena());
  });
});

describe.each([
  ["a simulated disk", local],
  ["a simulated network mount", nfs],
])("on %s", (_name, volume) => {
  it.each(titledRows)("%s", async (_title, row) => {
    await onSimulatedDisk(volume, (arena) => playRow(arena, row));
  });

  it.each(titledRaces)("%s", async (_title, play) => {
    await onSimulatedDisk(volume, play);
  });
});
