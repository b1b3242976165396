// The thread that hashes large bodies: it gives the digests of the bytes, never takes more than it can keep up with, and
// does not keep a process alive.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import type { Hashing } from "../../src/ports/hasher.ts";
import { nodeHasher } from "../../src/ports/node/hasher.ts";
import { makeScratch } from "../sites/scratch.ts";

const algorithms = ["md5", "sha256"] as const;

async function fill(hashing: Hashing, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) {
    (await hashing.block()).set(piece);
    hashing.update(piece.length);
  }
}

function start(): Hashing {
  const hashing = nodeHasher.start(algorithms);
  if (hashing === undefined) throw new Error("no thread is free");
  return hashing;
}

describe("the hasher", () => {
  it("gives the digests of several bodies that arrive at the same time in more pieces than it has blocks", async () => {
    const bodies = [1, 2, 3].map((body) => Array.from({ length: 9 }, (_, at) => Buffer.alloc(10_000 * at + body, at)));
    const found = await Promise.all(
      bodies.map(async (pieces) => {
        const hashing = start();
        await fill(hashing, pieces);
        return await hashing.end();
      }),
    );
    expect(found).toEqual(
      bodies.map((pieces) => algorithms.map((name) => createHash(name).update(Buffer.concat(pieces)).digest("hex"))),
    );
  });

  it("takes four bodies at a time, and another one when one was given up", async () => {
    const taken = Array.from({ length: 4 }, start);
    expect(nodeHasher.start(algorithms)).toBeUndefined();
    await fill(taken[0]!, [Buffer.from("half")]);
    taken[0]!.close();
    await taken[1]!.end();
    const next = start();
    for (const each of [...taken.slice(2), next]) await each.end();
  });

  it("lets the process end, and does not let it end before a body is hashed", () => {
    const program = `
      import { nodeHasher } from ${JSON.stringify(compiledModule(new URL("../../src/ports/node/hasher.ts", import.meta.url)))};
      const hashing = nodeHasher.start(["md5"]);
      (await hashing.block())[0] = 97;
      hashing.update(1);
      console.log((await hashing.end())[0]);`;
    const printed = execFileSync(process.execPath, ["--input-type=module", "-e", program], { timeout: 20_000 });
    expect(printed.toString().trim()).toBe(createHash("md5").update("a").digest("hex"));
  });

  it("costs the puts that it hashes when its thread dies, stores nothing of them, and later puts are hashed without it", () => {
    const [hasher, objects] = ["../../src/ports/node/hasher.ts", "../../src/objects/index.ts"].map((path) =>
      JSON.stringify(compiledModule(new URL(path, import.meta.url))),
    );
    // An algorithm that does not exist ends the real thread.
    const program = `
      import { nodeHasher } from ${hasher};
      import { openObjects } from ${objects};
      const store = await openObjects(${JSON.stringify(join(makeScratch(), "store"))});
      const bucket = await store.createBucket("photos");
      const size = 16 * 1024 * 1024;
      async function* body(then) {
        for (let at = 0; at < size; at += 65536) {
          yield Buffer.alloc(65536, 1);
          if (at === size / 2) await then?.();
        }
      }
      const kill = () => nodeHasher.start(["none"]).end().catch(() => undefined);
      const told = await bucket.put("large", body(kill), { size }).then(() => "stored", (error) => error.code);
      const listed = (await bucket.list()).objects.length;
      const { etag } = await bucket.put("large", body(), { size });
      await store.close();
      console.log(JSON.stringify({ told, listed, etag }));`;
    const printed = execFileSync(process.execPath, ["--input-type=module", "-e", program], { timeout: 60_000 });
    const etag = createHash("md5")
      .update(Buffer.alloc(16 * 1024 * 1024, 1))
      .digest("hex");
    expect(JSON.parse(printed.toString())).toEqual({ told: "RESOURCE_BUSY", listed: 0, etag });
  });
});
