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
  readonly documents: Findings | undefined;
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
  // Five for each round at most, of which one is a sale.
  for (let pieces = 0; pieces < 30; pieces++) await workstation.hear();
  workstation.kill("SIGTERM");
  await workstation.ended;
  damage(directory);
  return auditOf(await holdfast([...short, directory, "--seconds", "1"]));
}

function auditOf({ exitCode, stdout, stderr }: { exitCode: number | null; stdout: string; stderr: string }): Audit {
  expect(stderr).toBe("");
  const { isSound, stations } = JSON.parse(stdout) as { isSound: boolean; stations: Findings[] };
  const [tickets, stock, shelves, documents] = ["tickets", "stock", "shelves", "documents"].map((name) =>
    stations.find(({ station }) => station === name),
  );
  return { exitCode, isSound, tickets, stock, shelves, documents };
}

const patience = { timeout: 30_000, interval: 10 };
const sound = { lost: [], disorder: [] };
const lie = expect.stringMatching(/(sale|piece) 1 of till-01/) as unknown;
const soundButForTheLie = { lost: [lie], disorder: [] };

describe("damage that is done while all are at work", () => {
  test("a sale and a result that vanish are lost, and the file of the sale is named", async () => {
    const { tickets, documents, ...rest } = await runDamaged((directory) => {
      rmSync(join(directory, "sales", "0000000005"));
      const ledger = join(directory, "documents", "ledger");
      const [shard = ""] = readdirSync(ledger);
      rmSync(join(ledger, shard), { recursive: true });
    });
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, stock: soundButForTheLie, shelves: soundButForTheLie });
    // The first ticket was never sold.
    expect(tickets?.lost).toEqual([lie, expect.stringMatching(/^ticket 6, sale 6 of till-01/)]);
    expect(tickets?.disorder).toEqual([expect.stringContaining("sales/0000000005")]);
    expect(documents?.lost).toEqual([lie, expect.stringMatching(/^document \d+, piece \d+ of till-01/)]);
  });

  test("a stock that is damaged has lost what cannot be read any more, and its file is named", async () => {
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
});

describe("damage that a demo finds", () => {
  test("sales that are damaged or missing, lines and results that no workstation wrote, are told with their files", async () => {
    const odd = ["not JSON", "null", "5", '{"sequence":1}', '{"sequence":1,"fence":1,"saw":null}'];
    const { tickets, shelves, documents, ...rest } = await runAfter((directory) => {
      for (const name of ["0000000002", "0000000003"]) rmSync(join(directory, "sales", name));
      writeFileSync(join(directory, "sales", "0000000005"), "what is this?\n");
      writeFileSync(join(directory, "journals", "foreign~0000"), odd.map((line) => `${line}\n`).join(""));
      const ledger = join(directory, "documents", "ledger");
      writeFileSync(join(ledger, readdirSync(ledger)[0] ?? "", "foreign"), "what is this?\n");
    });
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, stock: sound });
    expect(tickets?.disorder).toEqual([
      expect.stringContaining("sales/0000000002 to 0000000003"),
      expect.stringContaining("sales/0000000005"),
    ]);
    // By the other lines.
    expect(shelves).toMatchObject({ lost: [] });
    expect(shelves?.disorder).toEqual(
      odd.map((_, index) => expect.stringContaining(`foreign~0000: line ${index + 1}`)),
    );
    expect(documents).toMatchObject({ lost: [] });
    expect(documents?.disorder).toEqual([expect.stringContaining("foreign is damaged")]);
  });

  test("a stock whose segments are gone and a shelf that is no file any more are told", async () => {
    const { stock, shelves, ...rest } = await runAfter((directory) => {
      renameSync(join(directory, "stock", "segments"), join(directory, "taken"));
      rmSync(join(directory, "warehouse", "north", "shelf-1"));
      mkdirSync(join(directory, "warehouse", "north", "shelf-1"));
    });
    expect(rest).toMatchObject({ exitCode: 1, isSound: false, tickets: sound });
    expect(stock?.disorder).toEqual([expect.stringContaining("stock/segments")]);
    expect(shelves?.disorder).toEqual([expect.stringContaining("warehouse/north/shelf-1: EISDIR")]);
  });
});
