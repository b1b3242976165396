// Something that is no file, a FIFO for instance, where a file should be: it is refused, and no
// caller waits for it.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import { makeScratch } from "../sites/scratch.ts";

const moduleUrl = (path: string): string =>
  JSON.stringify(pathToFileURL(compiledModule(new URL(`../../src/${path}`, import.meta.url))).href);

/** In a process of its own: what it must not do is hang. */
const asker = `
import { errnoOf } from ${moduleUrl("ports/disk-error.ts")};
import { openNodeDisk } from ${moduleUrl("ports/node/disk/disk.ts")};
import { pooledCalls } from ${moduleUrl("ports/node/disk/file-calls.ts")};
import { nfsCalls } from ${moduleUrl("ports/node/disk/nfs-calls.ts")};
const [root, path] = process.argv.slice(1);
const disk = await openNodeDisk(root);
const said = [await disk.readFile(path, 100).catch((error) => errnoOf(error) + " " + error.code), await disk.canOpen(path)];
for (const calls of [pooledCalls, nfsCalls]) {
  said.push(await calls.isThere(path));
  await calls.close(await calls.open(path, "r"));
}
const file = await disk.open(path, "read");
said.push((await file.stat()).kind, await file.read(0, 10).catch((error) => error.code));
await file.close();
console.log(JSON.stringify(said));
`;

describe.runIf(process.platform !== "win32")("a FIFO where a file should be", () => {
  it("is refused, and no caller waits for a writer", () => {
    const root = makeScratch();
    const path = join(root, "record.json");
    expect(spawnSync("mkfifo", [path]).status).toBe(0);
    const { stdout, signal } = spawnSync(process.execPath, ["--input-type=module", "-e", asker, root, path], {
      timeout: 20_000,
      encoding: "utf8",
    });
    expect(signal).toBe(null);
    expect(JSON.parse(stdout)).toEqual(["ENXIO IO_ERROR", true, true, true, "other", "IO_ERROR"]);
  });
});
