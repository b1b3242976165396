// The audit of a demo whose folder was damaged meanwhile: it says what is gone and where, and looks
// at all the rest.
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { makeScratch } from "../sites/scratch.ts";
import { holdfast, HoldfastProcess } from "./holdfast-process.ts";

interface Findings {
  readonly station: string;
  readonly acknowledged: number;
  readonly found: number;
  readonly lost: readonly string[];
  readonly disorder: readonly string[];
}

interface Audit {
  readonly exitCode: number | null;
  readonly isSound: boolean;
  readonly tickets: Findings | undefined;
  readonly stock: Findings | undefined;
  readonly shelves: Findings | undefined;
}

const short = ["demo", "--workstations", "1", "--json", "--dir"];

/**
 * A demo in which `damage` is done to its folder meanwhile, as soon as there are eight sales. Its
 * workstation is a saboteur because nothing happens to such a one: no kill comes between a sale and
 * its receipt. Its first pieces are lies, and lost.
 */
async function runDamaged(damage: (directory: string) => void): Promise<Audit> {
  const directory = join(makeScratch(), "shop");
  const demo = new HoldfastProcess([...short, directory, "--seconds", "5", "--sabotage"]);
  await vi.waitFor(() => expect(readdirSync(join(directory, "sales"))).toContain("0000000008"), patience);
  damage(directory);
  return auditOf(await demo.ended);
}

/** A workstation alone, then `damage` to what it left, then a demo there. */
async function runAfter(damage: (directory: string) => void): Promise<Audit> {
  const directory = join(makeScratch(), "shop");
  const workstation = new HoldfastProcess(["demo", "--join", "--dir", directory]);
  // Three for each round at most, of which one is a sale.
  for (let pieces = 0; pieces < 24; pieces++) await workstation.hear();
  workstation.kill("SIGTERM");
  await workstation.ended;
  damage(directory);
  return auditOf(await holdfast([...short, directory, "--seconds", "1"]));
}

function auditOf({ exitCode, stdout, stderr }: { exitCode: number | null; stdout: string; stderr: string }): Audit {
  expect(stderr).toBe("");
  const { isSound, stations } = JSON.parse(stdout) as { isSound: boolean; stations: Findings[] };
  const [tickets, stock, shelves] = ["tickets", "stock", "shelves"].map((name) =>
    stations.find(({ station }) => station === name),
  );
  return { exitCode, isSound, tickets, stock, shelves };
}

const patience = { timeout: 30_000, interval: 10 };
const sound = { lost: [], disorder: [] };
const lie = expect.stringMatching(/(sale|piece) 1 of till-01/) as unknown;
const soundButForTheLie = { lost: [lie], disorder: [] };

describe("a sale", () => {
  test("that vanishes while all are at work is lost, and its file is named", async () => {
    const { tickets, ...rest } = await runDamaged((directory) => rmSync(join(directory, "sales", "0000000005")));
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, stock: soundButForTheLie, shelves: soundButForTheLie });
    // The first ticket was never sold.
    expect(tickets?.lost).toEqual([lie, expect.stringMatching(/^ticket 6, sale 6 of till-01/)]);
    expect(tickets?.disorder).toEqual([expect.stringContaining("sales/0000000005")]);
  });

  test("whose bytes are damaged is told with its file, and so are many that are missing", async () => {
    const { tickets, ...rest } = await runAfter((directory) => {
      for (const name of ["0000000002", "0000000003"]) rmSync(join(directory, "sales", name));
      writeFileSync(join(directory, "sales", "0000000005"), "what is this?\n");
    });
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, stock: sound, shelves: sound });
    expect(tickets?.disorder).toEqual([
      expect.stringContaining("sales/0000000002 to 0000000003"),
      expect.stringContaining("sales/0000000005"),
    ]);
  });
});

describe("the stock", () => {
  test("that is damaged while all are at work has lost what cannot be read any more, and its file is named", async () => {
    const { stock, ...rest } = await runDamaged((directory) => {
      const path = join(directory, "stock", "segments", "0000000001.ndjson");
      const file = openSync(path, "r+");
      // In the first line of events: further lines are being written meanwhile.
      writeSync(file, "?", readFileSync(path).indexOf('"events"') + 1);
      closeSync(file);
    });
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, tickets: soundButForTheLie, shelves: soundButForTheLie });
    expect(stock?.disorder).toEqual([expect.stringContaining("segments/0000000001.ndjson is damaged")]);
    expect(stock?.lost).toHaveLength(stock?.acknowledged ?? 0);
    expect(stock?.acknowledged).toBeGreaterThan(5);
  });

  test("whose segments are gone is told with its file", async () => {
    const { stock, ...rest } = await runAfter((directory) =>
      renameSync(join(directory, "stock", "segments"), join(directory, "taken")),
    );
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, tickets: sound, shelves: sound });
    expect(stock?.disorder).toEqual([expect.stringContaining("stock/segments")]);
  });
});

describe("the shelves", () => {
  test("of which a journal has a line that no workstation wrote are audited by the other lines", async () => {
    const odd = ["not JSON", "null", "5", '{"sequence":1}', '{"sequence":1,"fence":1,"saw":null}'];
    const { shelves, ...rest } = await runAfter((directory) =>
      writeFileSync(join(directory, "journals", "foreign~0000"), odd.map((line) => `${line}\n`).join("")),
    );
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, tickets: sound, stock: sound });
    expect(shelves).toMatchObject({ lost: [] });
    expect(shelves?.disorder).toEqual(
      odd.map((_, index) => expect.stringContaining(`foreign~0000: line ${index + 1}`)),
    );
  });

  test("one of which is no file any more are told with it", async () => {
    const { shelves, ...rest } = await runAfter((directory) => {
      rmSync(join(directory, "warehouse", "north", "shelf-1"));
      mkdirSync(join(directory, "warehouse", "north", "shelf-1"));
    });
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, tickets: sound, stock: sound });
    expect(shelves?.disorder).toEqual([expect.stringContaining("warehouse/north/shelf-1: EISDIR")]);
  });
});
