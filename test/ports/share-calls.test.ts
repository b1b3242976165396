// Which calls are used on which share. What they are for, that no server delegates a file and no client remembers an absence, only real ones show: `npm run test:shares`.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Volume } from "../../src/ports/disk.ts";
import { pooledCalls } from "../../src/ports/node/file-calls.ts";
import { nfsCalls } from "../../src/ports/node/nfs-calls.ts";
import { callsFor } from "../../src/ports/node/share-calls.ts";
import { believingListings, smbCalls } from "../../src/ports/node/smb-calls.ts";
import { makeScratch } from "./scratch.ts";

const share = (type: string): Volume => ({ kind: "network", type, mountOptions: [] });

describe("the calls for a share", () => {
  it("ask for no delegation on NFS 4, whose client on Linux knows how", () => {
    expect(callsFor(share("nfs4"), "linux")).toBe(nfsCalls);
    for (const type of ["cifs", "smb3"]) expect(callsFor(share(type), "linux")).toBe(smbCalls);
    for (const type of ["nfs", "fuse.sshfs", "9p"]) expect(callsFor(share(type), "linux")).toBe(pooledCalls);
    expect(callsFor(share("nfs4"), "darwin")).toBe(pooledCalls);
  });

  it.runIf(process.platform === "linux")(
    "open a directory as ever, which cannot be opened for direct I/O",
    async () => {
      const root = makeScratch();
      mkdirSync(join(root, "d"));
      await nfsCalls.close(await nfsCalls.open(join(root, "d"), "r"));
      await expect(nfsCalls.isThere(join(root, "d"))).resolves.toBe(true);
      await expect(nfsCalls.isThere(join(root, "e"))).resolves.toBe(false);
      await expect(nfsCalls.open(join(root, "e"), "r")).rejects.toMatchObject({ code: "ENOENT" });
    },
  );

  it("do not believe an absence on SMB before the directory was listed", async () => {
    const root = makeScratch();
    writeFileSync(join(root, "made"), "by another machine");
    const asked: string[] = [];
    // A client that remembers what was not there, until it lists.
    let remembers = true;
    const calls = believingListings({
      ...pooledCalls,
      open: async (path, flags, mode) => {
        asked.push("open");
        if (remembers) throw Object.assign(new Error("not there"), { code: "ENOENT" });
        return await pooledCalls.open(path, flags, mode);
      },
      list: async (path, namesMax) => {
        asked.push("list");
        remembers = false;
        return await pooledCalls.list(path, namesMax);
      },
    });
    await calls.close(await calls.open(join(root, "made"), "r"));
    expect(asked).toEqual(["open", "list", "open"]);
    await expect(calls.open(join(root, "never made"), "r")).rejects.toMatchObject({ code: "ENOENT" });
    await expect(calls.open(join(root, "no directory", "x"), "r+")).rejects.toMatchObject({ code: "ENOENT" });
  });
});
