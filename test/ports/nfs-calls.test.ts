// Which calls are used on which share. What they are for, that no server delegates a file, only real servers show: `npm run test:shares`.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Volume } from "../../src/ports/disk.ts";
import { pooledCalls } from "../../src/ports/node/file-calls.ts";
import { callsFor, nfsCalls } from "../../src/ports/node/nfs-calls.ts";
import { makeScratch } from "./scratch.ts";

const share = (type: string): Volume => ({ kind: "network", type, mountOptions: [] });

describe("the calls for a share", () => {
  it("ask for no delegation on NFS 4, whose client on Linux knows how", () => {
    expect(callsFor(share("nfs4"), "linux")).toBe(nfsCalls);
    for (const type of ["nfs", "cifs", "smb3", "fuse.sshfs", "9p"])
      expect(callsFor(share(type), "linux")).toBe(pooledCalls);
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
});
