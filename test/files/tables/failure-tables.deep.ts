// Every row of the failure tables with real processes, one of which is killed exactly there, and on a simulated network
// mount.
import { beforeAll, describe, it } from "vitest";
import { loadSqlite } from "../../../src/files/engine/sqlite.ts";
import { nfs } from "../../sites/world.ts";
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

describe("on a simulated network mount", () => {
  it.each(titledRows)("%s", async (_title, row) => {
    await onSimulatedDisk(nfs, (arena) => playRow(arena, row));
  });

  it.each(titledRaces)("%s", async (_title, play) => {
    await onSimulatedDisk(nfs, play);
  });
});
