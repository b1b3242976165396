// The demo twice in one folder that stays: what the first one left is neither lost nor doubled. And one that lies: it is
// found out.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { JournalLine } from "../../src/cli/demo/stations/shelf-audit.ts";
import { makeScratch } from "../sites/scratch.ts";
import { holdfast } from "./holdfast-process.ts";

interface Result {
  readonly isSound: boolean;
  readonly kills: number;
  readonly failures: readonly string[];
  readonly stations: readonly {
    readonly station: string;
    readonly acknowledged: number;
    readonly found: number;
    readonly lost: readonly string[];
    readonly doubled: readonly string[];
    readonly disorder: readonly string[];
  }[];
}

test("the result is one line of JSON when asked for, a folder of one's own stays, and two who were at one shelf together are found out", async () => {
  const directory = join(makeScratch(), "shop");
  const runs: Result[] = [];
  // Twice: an earlier demo in the same folder is neither lost nor doubled.
  for (let run = 0; run < 2; run++) {
    const { exitCode, stdout, stderr } = await holdfast([
      "demo",
      "--workstations",
      "2",
      "--seconds",
      "3",
      "--dir",
      directory,
      "--json",
    ]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    runs.push(JSON.parse(stdout) as Result);
  }
  for (const { isSound, failures, stations } of runs) {
    expect({ isSound, failures }).toEqual({ isSound: true, failures: [] });
    const sound = { lost: [], doubled: [], disorder: [] };
    expect(stations).toMatchObject([
      { station: "tickets", ...sound },
      { station: "stock", ...sound },
      { station: "shelves", ...sound },
      { station: "documents", ...sound },
      { station: "labels", ...sound },
      { station: "notes", ...sound },
    ]);
    for (const { acknowledged } of stations) expect(acknowledged).toBeGreaterThan(0);
  }
  for (const [index, { found }] of (runs[0]?.stations ?? []).entries())
    expect(runs[1]?.stations[index]?.found).toBeGreaterThanOrEqual(
      found + (runs[1]?.stations[index]?.acknowledged ?? 0),
    );
  expect(readdirSync(directory).sort()).toEqual([
    "documents",
    "ground",
    "journals",
    "labels",
    "notes",
    "sales",
    "stock",
    "tickets",
    "warehouse",
  ]);

  // Then a process that comes after all others to a shelf, and has not seen what they left there.
  const journals = join(directory, "journals");
  const noted = readdirSync(journals)
    .flatMap((name) => readFileSync(join(journals, name), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as JournalLine);
  const [shelf = ""] = Object.keys(noted.find(({ saw }) => saw !== undefined)?.saw ?? {});
  const fence = Math.max(...noted.map((line) => line.fence)) + 1;
  const forged: JournalLine[] = [
    { sequence: 1, fence, saw: { [shelf]: 0 } },
    { sequence: 1, fence },
  ];
  writeFileSync(join(journals, "intruder~0000"), forged.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const found = await holdfast(["demo", "--workstations", "1", "--seconds", "1", "--dir", directory]);
  expect(found.exitCode).toBe(1);
  expect(found.stdout).toContain(`out of order: intruder (piece 1) found fence 0 on ${shelf}, where till-`);
});

test("what was acknowledged and never written is found, and named", async () => {
  const { exitCode, stdout } = await holdfast(["demo", "--workstations", "2", "--seconds", "3", "--sabotage"]);
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/^ {2}lost: ticket \d+, sale 1 of till-01/m);
  expect(stdout).toMatch(/^ {2}lost: a \w+, piece 1 of till-01/m);
  expect(stdout).toMatch(/^ {2}lost: a lock on .* with fence \d+, piece 1 of till-01/m);
  expect(stdout).toMatch(/\nA promise was broken: 6 lost\.\n$/);
});
