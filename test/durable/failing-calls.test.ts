// The same on the real disk: every system call of the port fails once with every errno.
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { Chain } from "../../src/durable/chain/chain.ts";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { putIfAbsent, replace } from "../../src/durable/publish/publish.ts";
import type { Staging } from "../../src/durable/publish/staging.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { slotName } from "../../src/format/name.ts";
import { NodeDisk } from "../../src/ports/node/disk/disk.ts";
import { blockingCalls, pooledCalls, type FileCalls } from "../../src/ports/node/disk/file-calls.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch, openFilesBelow } from "../sites/scratch.ts";
import { makeRealPlace, noteKind } from "../sites/disks.ts";
import { errnos, local } from "../sites/world.ts";

/** Calls of which one fails; a close that fails has closed all the same. */
class FailingCalls {
  /** Which one, from 1. */
  at = Infinity;
  errno = "";
  count = 0;
  failed = "";
  readonly calls: FileCalls;

  constructor(calls: FileCalls) {
    this.calls = new Proxy(calls, {
      get: (target, key: keyof FileCalls) => {
        const call = target[key] as ((...args: unknown[]) => unknown) | undefined;
        if (call === undefined) return undefined;
        return (...args: unknown[]): unknown => {
          if (++this.count !== this.at) return call(...args);
          this.failed = key;
          const fail = (): never => {
            throw Object.assign(new Error(`${this.errno}: made to fail`), { code: this.errno });
          };
          return key === "close" ? Promise.resolve(call(...args)).then(fail) : fail();
        };
      },
    });
  }
}

/**
 * Fails call 1, 2, 3 … of `action` until it is done before; each time it must end well, or in an
 * error of ours. Then `check`.
 */
async function tryAllCalls(
  errno: string,
  { failing, root }: { readonly failing: FailingCalls; readonly root: string },
  action: () => Promise<unknown>,
  check: (isDone: boolean, code: string | undefined) => Promise<void>,
): Promise<void> {
  for (let at = 1; ; at++) {
    Object.assign(failing, { at, errno, count: 0, failed: "" });
    const before = openFilesBelow(root);
    let code: string | undefined;
    try {
      await action();
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      ({ code } = error);
    }
    failing.at = Infinity;
    expect(openFilesBelow(root), `open after ${errno} at call ${at} (${failing.failed})`).toEqual(before);
    await check(code === undefined, code);
    if (failing.failed === "") return;
  }
}

const tables: [string, FileCalls][] = [
  ["blocking", blockingCalls],
  ["pooled", pooledCalls],
];

describe.each(tables)("on the real disk with %s calls", (_, calls) => {
  interface Site {
    readonly failing: FailingCalls;
    readonly staging: Staging;
    readonly root: string;
    readonly directory: string;
    readonly temps: () => string[];
  }
  async function makeSite(): Promise<Site> {
    const place = await makeRealPlace();
    const failing = new FailingCalls(calls);
    const staging = { ...place.staging, disk: new NodeDisk(local, failing.calls) };
    // What could not be removed is not counted against the next attempt.
    const temps = (): string[] => {
      const names = readdirSync(place.temp);
      for (const name of names) rmSync(join(place.temp, name));
      return names;
    };
    return { failing, staging, root: dirname(place.directory), directory: place.directory, temps };
  }
  const isRefusal = (code: string | undefined): boolean => code === "DISK_FULL" || code === "NO_PERMISSION";

  describe.each(errnos)("%s at every call", (errno) => {
    it("leaves put if absent whole or undone, with no temp file and no open descriptor", async () => {
      const { failing, staging, root, directory, temps } = await makeSite();
      const target = join(directory, "name");
      await tryAllCalls(
        errno,
        { failing, root },
        () => putIfAbsent(staging, target, Buffer.from("mine")),
        async (isDone, code) => {
          if (failing.failed !== "unlink") expect(temps()).toEqual([]);
          else temps();
          if (isDone) expect(readFileSync(target, "utf8")).toBe("mine");
          if (isRefusal(code)) expect(existsSync(target)).toBe(false);
          expect(await putIfAbsent(staging, target, Buffer.from("mine"))).toBe(true);
          rmSync(target);
        },
      );
    });

    it("leaves a replaced file old or new, with no temp file and no open descriptor", async () => {
      const { failing, staging, root, directory, temps } = await makeSite();
      const target = join(directory, "name");
      await replace(staging, target, Buffer.from("old"));
      await tryAllCalls(
        errno,
        { failing, root },
        () => replace(staging, target, Buffer.from("new")),
        async (isDone, code) => {
          if (failing.failed !== "unlink") expect(temps()).toEqual([]);
          else temps();
          const content = readFileSync(target, "utf8");
          expect(isDone ? ["new"] : isRefusal(code) ? ["old"] : ["old", "new"]).toContain(content);
          await replace(staging, target, Buffer.from("old"));
        },
      );
    });

    it("loses no number and no entry of a chain", async () => {
      const { failing, staging, root, directory } = await makeSite();
      const acknowledged: [number, string][] = [];
      let round = 0;
      const chain = new Chain(staging, directory, noteKind);
      await tryAllCalls(
        errno,
        { failing, root },
        async () => {
          const id = `id-${++round}`;
          const entry = await chain.append(id, () => ({ text: id }));
          acknowledged.push([entry!.number, id]);
        },
        async () => {
          const fresh = new Chain(staging, directory, noteKind);
          for (const [number, id] of acknowledged) expect(await fresh.get(number)).toMatchObject({ id });
          const names = readdirSync(directory).sort();
          expect(names).toEqual(names.map((__, index) => slotName(index + 1)));
        },
      );
      expect(acknowledged.length).toBeGreaterThan(0);
    });

    it("leaves a ground that can be joined, and of a failed attempt nothing but what could not be removed", async () => {
      const directory = makeScratch();
      const failing = new FailingCalls(calls);
      const ports = { ...(await openNodePorts(directory)), disk: new NodeDisk(local, failing.calls) };
      const ids = new Set<string>();
      await tryAllCalls(
        errno,
        { failing, root: directory },
        async () => {
          const ground = await Ground.open(ports, directory);
          ids.add(ground.id);
          failing.at = Infinity;
          await ground.close();
        },
        async () => {
          const ground = await Ground.open(ports, directory);
          ids.add(ground.id);
          expect(await putIfAbsent(ground.staging, join(directory, "name"), Buffer.from("x"))).toBe(true);
          rmSync(join(directory, "name"));
          await ground.close();
          expect(readdirSync(join(directory, "holders"))).toEqual([]);
          expect(readdirSync(join(directory, "temp"))).toEqual([]);
        },
      );
      expect(ids.size).toBe(1);
    });
  });
});
