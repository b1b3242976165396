// Indexes that a thread builds: the same files as those that the process builds itself, whatever happens to the thread.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { encodeContent } from "../../../src/events/log/format/line.ts";
import { plainCodec } from "../../../src/events/model/codec.ts";
import { OpenedLog } from "../../../src/events/open/opened-log.ts";
import { openNodePorts } from "../../../src/ports/node/ports.ts";
import { createNodeThreads } from "../../../src/ports/node/threads.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import type { Threads } from "../../../src/ports/threads.ts";
import { compiledModule } from "../../../harness/processes/compiled-module.ts";
import { makeScratch } from "../../sites/scratch.ts";

const compiled = (path: string): string =>
  pathToFileURL(compiledModule(new URL(`../../../src/${path}`, import.meta.url))).href;
const indexThread = compiled("events/index-thread.ts");

/** A thread of the real module, or of `program`. `answers`: what it reported. */
function threadsOf(program?: string, stallMs?: number): { readonly threads: Threads; readonly answers: boolean[] } {
  const answers: boolean[] = [];
  let base = indexThread;
  if (program !== undefined) {
    const path = join(makeScratch(), "index-thread.js");
    writeFileSync(
      path,
      `import { openNodeFolder } from ${JSON.stringify(compiled("ports/node/ports.ts"))};
      import { doRequests } from ${JSON.stringify(compiled("ports/node/thread-side.ts"))};
      import { doIndexRequest } from ${JSON.stringify(compiled("events/index/index-thread.ts"))};
      const work = async (request, pause) =>
        await doIndexRequest((await openNodeFolder(request.directory)).disk, request, pause);
      ${program}`,
    );
    writeFileSync(join(path, "../package.json"), '{"type":"module"}');
    base = pathToFileURL(path).href;
  }
  const real = createNodeThreads(stallMs);
  return {
    answers,
    threads: {
      join: () => {
        const thread = real.join("./index-thread.js", base);
        if (thread === undefined) throw new Error("The package is not built.");
        return {
          run: async (request, signal) => {
            const isDone = await thread.run(request, signal);
            answers.push(isDone);
            return isDone;
          },
          leave: () => thread.leave(),
        };
      },
    },
  };
}

async function portsOf(directory: string, threads?: Threads): Promise<Ports> {
  const { threads: _, ...ports } = await openNodePorts(directory);
  return threads === undefined ? ports : { ...ports, threads };
}

async function open(ports: Ports, directory: string): Promise<OpenedLog> {
  return await OpenedLog.open(ports, directory, plainCodec, { segmentBytesMax: 2000, durability: "none" });
}

/** Each append fills a segment. Six are merged. */
async function makeLog(sealed = 8): Promise<string> {
  const directory = join(makeScratch(), "log");
  const log = await open(await portsOf(directory), directory);
  for (let line = 0; line <= sealed; line++) {
    const heads = Array.from({ length: 40 }, (_, n) => ({
      type: n % 3 === 0 ? "Sold" : "Gelöscht",
      tags: [`sale:${line * 40 + n}`, `till:${n % 5}`],
      id: `id-${line}-${n}`,
    }));
    const payload = heads.map(() => '{"data":null}');
    const content = encodeContent({ events: heads, payload });
    await log.appender.append({ content, heads, payload, timeoutMs: 5000 });
  }
  await log.close();
  return directory;
}

function indexesIn(directory: string): Record<string, string> {
  const place = join(directory, "index");
  return Object.fromEntries(
    readdirSync(place).map((name) => [name, readFileSync(join(place, name)).toString("base64")]),
  );
}

function tempFilesIn(directory: string): string[] {
  return readdirSync(join(directory, ".holdfast", "temp"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}

async function build(directory: string, threads?: Threads): Promise<Record<string, string>> {
  rmSync(join(directory, "index"), { recursive: true, force: true });
  const log = await open(await portsOf(directory, threads), directory);
  await log.view.buildIndexes();
  expect(tempFilesIn(directory)).toEqual([]);
  await log.close();
  return indexesIn(directory);
}

it("the thread builds and merges the same files as the process", async () => {
  const directory = await makeLog();
  const { threads, answers } = threadsOf();
  const expected = await build(directory);
  expect(Object.keys(expected)).toHaveLength(3);
  expect(await build(directory, threads)).toEqual(expected);
  expect(answers).toEqual(Array.from({ length: 9 }, () => true));
});

it.each([
  ["dies before it has begun", `doRequests(async () => process.exit(1));`],
  ["dies when the file is written", `doRequests(async (...args) => { await work(...args); process.exit(1); });`],
  ["dies while it merges", `doRequests((r, p) => work(r, async () => (r.parts.length > 0 ? process.exit(1) : p())));`],
  ["hangs", `doRequests(async () => { for (;;); });`],
  ["cannot be loaded", `throw new Error("not here");`],
  ["reports an error", `doRequests(async (...args) => { await work(...args); throw new Error("none"); });`],
])("the process builds what a thread that %s has not built", async (_, program) => {
  const directory = await makeLog();
  const { threads, answers } = threadsOf(program, 1000);
  expect(await build(directory, threads)).toEqual(await build(directory));
  expect(answers).toContain(false);
});

it("a thread finds no usable part, and the process builds that part again", async () => {
  // The parts of the newest merge are kept.
  const directory = await makeLog(6);
  const expected = await build(directory);
  rmSync(join(directory, "index", "0000000001-0000000006.idx"));
  const part = join(directory, "index", "0000000002-0000000002.idx");
  const bytes = readFileSync(part);
  writeFileSync(part, bytes.fill(0, bytes.length - 4000));
  const { threads, answers } = threadsOf();
  const log = await open(await portsOf(directory, threads), directory);
  await log.view.buildIndexes();
  await log.close();
  expect(indexesIn(directory)).toEqual(expected);
  expect(answers).toContain(false);
});

it("closing a log ends the merge of its thread, and leaves no temp file", async () => {
  const directory = await makeLog();
  const program = `doRequests(async (request, pause) => {
    await work(request, pause);
    while (request.parts.length > 0) await pause();
  });`;
  const { threads, answers } = threadsOf(program);
  const log = await open(await portsOf(directory, threads), directory);
  const build = log.view.buildIndexes();
  await expect.poll(() => [answers.length, tempFilesIn(directory).length], { timeout: 20_000 }).toEqual([8, 1]);
  log.view.endMerges();
  await expect(build).rejects.toMatchObject({ code: "CLOSED" });
  expect(answers[8]).toBe(false);
  expect(tempFilesIn(directory)).toEqual([]);
  await log.close();
  expect(Object.keys(indexesIn(directory))).not.toContain("0000000001-0000000006.idx");
});

it("a process whose segments were sealed has its indexes built by the thread, and ends without closing the log", () => {
  const directory = join(makeScratch(), "log");
  // The events of four segments, which have 8 MB each.
  const program = `
    import { openEvents } from ${JSON.stringify(compiled("events/index.ts"))};
    const events = await openEvents(${JSON.stringify(directory)}, { durability: "none" });
    const data = "x".repeat(100_000);
    for (let n = 0; n < 340; n++) await events.append({ type: "Sold", tags: ["sale:" + n], data });
    `;
  execFileSync(process.execPath, ["--input-type=module", "-e", program], { timeout: 60_000 });
  expect(Object.keys(indexesIn(directory))).toHaveLength(4);
});
