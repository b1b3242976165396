// Five ways in which files are handed over by hand, and what each loses or doubles; beside each the same situation
// with a box. The naive programs are whole and usual; the moment at which the other program comes in is chosen.
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { appendFile, open, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openHandoff } from "../../src/handoff/index.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { drain } from "../sites/boxes.ts";
import { makeScratch } from "../sites/scratch.ts";

type Box = Awaited<ReturnType<typeof openHandoff>>;

/** What the other program does, at the worst moment. */
type Meanwhile = () => void | Promise<void>;

const rows = "order 1\norder 2\norder 3\norder 4\n";
const [firstHalf, secondHalf] = [rows.slice(0, 16), rows.slice(16)];

async function openBox(): Promise<Box> {
  const box = await openHandoff(join(makeScratch(), "box"));
  onTestFinished(() => box.close());
  return box;
}

/** A body that arrives in two halves. */
async function* inHalves(meanwhile: Meanwhile): AsyncGenerator<Uint8Array> {
  yield Buffer.from(firstHalf);
  await meanwhile();
  yield Buffer.from(secondHalf);
}

describe("to look whether a lock exists and then to create it", () => {
  async function workIfUnlocked(directory: string, work: () => void, meanwhile: Meanwhile): Promise<void> {
    const lock = join(directory, "orders.csv.lock");
    if (existsSync(lock)) return;
    await meanwhile();
    writeFileSync(lock, String(process.pid));
    work();
  }

  it("lets two workers process one file", async () => {
    const directory = makeScratch();
    let worked = 0;
    const work = (): void => void worked++;
    await workIfUnlocked(directory, work, () => workIfUnlocked(directory, work, () => undefined));
    expect(worked).toBe(2);
  });

  it("is one step in a box: of many workers at the same moment one has the ticket", async () => {
    const box = await openBox();
    const others = [box, await openHandoff(box.directory), await openHandoff(box.directory)];
    onTestFinished(async () => {
      for (const other of others) await other.close();
    });
    await box.publish({ "orders.csv": rows });
    const taken = await Promise.all([...others, ...others].map((worker) => worker.take()));
    expect(taken.filter((delivery) => delivery !== undefined)).toHaveLength(1);
  });
});

describe("to write under the final name", () => {
  async function writeOrders(path: string, meanwhile: Meanwhile): Promise<void> {
    await using file = await open(path, "w");
    await file.write(firstHalf);
    await meanwhile();
    await file.write(secondHalf);
  }

  function processWhatIsThere(directory: string): string[] {
    return readdirSync(directory)
      .filter((name) => name.endsWith(".csv"))
      .map((name) => {
        const text = readFileSync(join(directory, name), "utf8");
        renameSync(join(directory, name), join(directory, `${name}.processed`));
        return text;
      });
  }

  it("lets a reader process half a file, and the other half never", async () => {
    const directory = makeScratch();
    let processed: string[] = [];
    await writeOrders(join(directory, "orders.csv"), () => void (processed = processWhatIsThere(directory)));
    expect([...processed, ...processWhatIsThere(directory)]).toEqual([firstHalf]);
  });

  it("does not happen in a box: a ticket is seen whole or not at all", async () => {
    const box = await openBox();
    let early: unknown = "not asked";
    await box.publish({ "orders.csv": inHalves(async () => void (early = await box.take())) });
    expect(early).toBeUndefined();
    expect(await (await box.take())!.text("orders.csv")).toBe(rows);
  });
});

describe("to take a file for complete when its size stops changing", () => {
  const looks = 5;

  /** Undefined while it changes. */
  function readWhenQuiet(path: string): string | undefined {
    const sizes = new Set(Array.from({ length: looks }, () => statSync(path).size));
    return sizes.size === 1 ? readFileSync(path, "utf8") : undefined;
  }

  it("takes a producer that waits for its network for one that is done", async () => {
    const path = join(makeScratch(), "orders.csv");
    let read: string | undefined;
    for await (const chunk of inHalves(() => void (read = readWhenQuiet(path)))) await appendFile(path, chunk);
    expect(read).toBe(firstHalf);
  });

  it("is not asked in a box: however long the producer waits, nothing is delivered before it has finished", async () => {
    const box = await openBox();
    const early: unknown[] = [];
    const body = inHalves(async () => {
      for (let look = 0; look < looks; look++) early.push(await box.take({ waitMs: 10 }));
    });
    await box.publish({ "orders.csv": body });
    expect(early).toEqual(Array.from({ length: looks }, () => undefined));
    const delivery = (await box.take())!;
    expect([delivery.files[0]?.size, await delivery.text("orders.csv")]).toEqual([rows.length, rows]);
  });
});

describe("to let all programs update one file", () => {
  async function addLine(path: string, line: string, meanwhile: Meanwhile): Promise<void> {
    const lines = JSON.parse(await readFile(path, "utf8")) as string[];
    await meanwhile();
    await writeFile(path, JSON.stringify([...lines, line]));
  }

  it("loses the update that comes between a read and a write", async () => {
    const path = join(makeScratch(), "status.json");
    writeFileSync(path, "[]");
    await addLine(path, "a is done", () => addLine(path, "b is done", () => undefined));
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(["a is done"]);
  });

  it("is not needed in a box: each program publishes what is its own, and none of it is lost", async () => {
    const box = await openBox();
    const other = await openHandoff(box.directory);
    onTestFinished(() => other.close());
    await box.publish({
      status: (async function* () {
        await other.publish({ status: "b is done" });
        yield Buffer.from("a is done");
      })(),
    });
    const seen: string[] = [];
    await drain(box, async (delivery) => {
      seen.push(await delivery.text("status"));
      await delivery.ack();
    });
    expect(seen.sort()).toEqual(["a is done", "b is done"]);
  });
});

describe("to trust that a lock of the operating system keeps others away", () => {
  it("does not stop a program that does not ask for it", async () => {
    const directory = makeScratch();
    const path = join(directory, "orders.csv");
    writeFileSync(path, rows);
    const { osLock } = await openNodePorts(directory);
    const lock = await osLock.open(path);
    onTestFinished(() => lock.close());
    expect(await lock.tryLock()).toBe(true);
    // A script of another team, which knows nothing of the lock.
    writeFileSync(path, firstHalf);
    expect(readFileSync(path, "utf8")).toBe(firstHalf);
  });

  it("is not what a box rests on: bytes that another program has changed reach no handler, and are kept with the reason", async () => {
    const box = await openBox();
    const { id } = await box.publish({ "orders.csv": rows.repeat(3_000) });
    writeFileSync(join(box.directory, "data", id.slice(-2), id, "orders.csv"), firstHalf);
    expect(await box.take()).toBeUndefined();
    const notes = join(box.directory, "notes", id.slice(-3));
    expect(readFileSync(join(notes, `${id}-1.json`), "utf8")).toContain('"outcome":"mismatch"');
    expect(readdirSync(join(box.directory, "error"), { recursive: true })).toContainEqual(
      expect.stringContaining(`${id}-1.json`),
    );
  });
});
