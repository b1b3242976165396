// A process is killed at its disk calls while it changes a tree, indexes, summarises and extracts. Whatever it leaves,
// another process works off: every file is found, nothing else is, and no lock is left.
import { describe, expect, it } from "vitest";
import { IndexedFiles } from "../../../src/files/indexed-files.ts";
import { loadSqlite } from "../../../src/files/engine/sqlite.ts";
import { openTree } from "../../../src/files/tree/open-tree.ts";
import { local, nfs, World } from "../../sites/world.ts";
import { putFiles, textsIn } from "../file-sites.ts";
import { found, locksOf } from "./indexed-sites.ts";

const root = "/share/tree";
const staged = "/share/staged";
const leaseMs = 2_000;
const stepsMax = 6_000;
/** Enough for all of it. */
const workMs = 20_000;
const volumes = { local, network: nfs };

class Trying {
  readonly world: World;

  constructor(volume: keyof typeof volumes) {
    this.world = new World({ volume: volumes[volume] });
  }

  async open(process: string): Promise<IndexedFiles> {
    const opened = await this.mustEnd(openTree(this.world.ports(process, `m-${process}`), root, { leaseMs }));
    const options = {
      leaseMs,
      timeoutMs: 60_000,
      graceMs: 100,
      retry: { attempts: 5, backoffMs: { min: 10, max: 20 } },
      summarize: async (directory: string, entries: readonly string[]) => ({
        abstract: `about ${directory}`,
        overview: entries.join(),
      }),
      sessions: {
        extract: async ({ number }: { number: number }) => [{ path: `memories/${number}.md`, text: "a wolf spoke" }],
      },
    };
    return await this.mustEnd(IndexedFiles.open(opened, options));
  }

  /** Everything that a process does with a tree. */
  async work(files: IndexedFiles): Promise<void> {
    await files.write("notes/a.md", "a wolf");
    await files.add("guide", staged);
    const session = await files.session("talk");
    await session.append({ role: "user", content: "wolf?" });
    await session.commit();
    await files.settled();
    await files.move("guide", "manual");
    await files.remove("notes/a.md");
    await files.settled();
  }

  async mustBeWhole(files: IndexedFiles): Promise<void> {
    await this.mustEnd(files.settled());
    const { disk } = this.world.ports("watcher", "m1");
    const texts = await this.mustEnd(textsIn(disk, root));
    const expected = Object.entries(texts).flatMap(([path, text]) => (text.includes("wolf") ? [path] : []));
    expect(await this.mustEnd(found(files, "wolf"))).toEqual(expected.sort());
    const session = await this.mustEnd(files.session("talk"));
    const open = await this.mustEnd(session.messages());
    const archived: number[] = [];
    await this.mustEnd(
      (async () => {
        for await (const { messages } of session.archives()) archived.push(messages.length);
      })(),
    );
    // Open or archived, never both; and what is archived was extracted.
    expect(open.length + archived.length).toBeLessThanOrEqual(1);
    expect("memories/1.md" in texts).toBe(archived.length === 1);
    const manual = Object.keys(texts).filter((path) => path.startsWith("manual/") && !path.includes("/."));
    if (manual.length > 0)
      expect(texts["manual/.overview.md"]?.split(",").filter((name) => name !== "deep")).toEqual(["x.md"]);
    // What the dead process held ends with its lease.
    const locks = await this.mustEnd(files.locks());
    await this.mustEnd((await this.mustEnd(locks.acquire("", { mode: "tree", timeoutMs: 60_000 }))).release());
    expect(await this.mustEnd(locksOf(files))).toEqual([]);
    await this.mustEnd(files.close());
  }

  async mustEnd<T>(action: Promise<T>): Promise<T> {
    let isOver = false;
    const over = action.finally(() => (isOver = true));
    over.catch(() => undefined);
    for (let step = 0; step < stepsMax && !isOver; step++) await this.world.advance(20);
    if (!isOver) throw new Error("it hangs");
    return await over;
  }
}

/** True when all was done before the call came. */
async function killAt(volume: keyof typeof volumes, at: number): Promise<boolean> {
  // Not a call of the simulated world.
  await loadSqlite();
  const trying = new Trying(volume);
  const { disk } = trying.world.ports("maker", "m0");
  await trying.mustEnd(putFiles(disk, staged, { "x.md": "a wolf", "deep/y.md": "another wolf" }));
  const ada = await trying.open("ada");
  let isDone = false;
  const work = async (): Promise<void> => {
    await trying.work(ada);
    isDone = true;
  };
  await trying.world.killAtCall("ada", at, work, workMs);
  await trying.mustBeWhole(await trying.open("bob"));
  return isDone;
}

export function describeWorkerCrashes({
  first,
  stride,
  callsMax,
}: {
  first: number;
  stride: number;
  callsMax: number;
}): void {
  describe.each(["local", "network"] as const)("a process that is killed on a %s disk while it works", (volume) => {
    const points = Array.from({ length: Math.ceil((callsMax - first) / stride) }, (_, index) => first + index * stride);
    it.each(points)("at disk call %d leaves what another one works off", async (at) => {
      await killAt(volume, at);
    });
  });
}
