// Which mounts are refused, and which lead to a warning, by what real kernels show of them.
import { describe, expect, it } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { checkMount } from "../../src/durable/mount/mount-check.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { createStoreLock } from "../../src/locks/store/store-lock.ts";
import { TablePathLocks } from "../../src/locks/path/service.ts";
import { PortsSemaphore } from "../../src/locks/semaphore/semaphore.ts";
import { InProcessLocks } from "../../src/locks/semaphore/in-process.ts";
import { parseMountinfo, volumeAt } from "../../src/ports/node/disk/mount-table.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { World } from "../sites/world.ts";

// In the form of /proc/self/mountinfo, mounted as we advise: the second as a Linux 6.1 client
// showed it, the first written after the manual.
const nfsLine =
  "22 21 0:20 / /mnt/share rw,relatime - nfs4 10.77.0.1:/export rw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.77.0.11,lookupcache=pos,local_lock=none,addr=10.77.0.1";
const smbLine =
  "22 21 0:20 / /mnt/share rw,relatime - cifs //10.77.0.1/share rw,vers=3.1.1,cache=strict,nolease,username=root,uid=0,noforceuid,gid=0,noforcegid,addr=10.77.0.1,file_mode=0755,dir_mode=0755,soft,nounix,serverino,mapposix,rsize=4194304,wsize=4194304,bsize=1048576,echo_interval=4,actimeo=0,closetimeo=0";

function volumeOf(line: string) {
  const volume = volumeAt("/mnt/share/store", parseMountinfo(`21 1 8:1 / / rw - ext4 /dev/sda1 rw\n${line}\n`));
  if (volume === undefined) throw new Error("There is no such mount.");
  return volume;
}

/** What was said while a store was opened on such a mount, and how that ended. */
async function opening(line: string, open: (ports: Ports) => Promise<unknown>) {
  const ports = new World({ volume: volumeOf(line) }).ports("p1");
  const warnings: string[] = [];
  const host = { ...ports.host, warn: (message: string) => void warnings.push(message) };
  const code = await open({ ...ports, host }).then(
    () => "opened",
    (error: unknown) => (isHoldfastError(error) ? error.code : String(error)),
  );
  return { code, warnings };
}

const openings: readonly (readonly [string, (ports: Ports) => Promise<unknown>])[] = [
  ["a ground", async (ports) => await (await Ground.open(ports, "/store")).close()],
  [
    "path locks",
    async (ports) => {
      await ports.disk.mkdir("/tree");
      const ground = await Ground.open(ports, "/tree/.holdfast");
      await (await TablePathLocks.open(ground, { root: "/tree", ownsGround: true })).close();
    },
  ],
  ["a store lock", async (ports) => await (await createStoreLock(ports, "/store")).close()],
  [
    "a semaphore",
    async (ports) => {
      const world = { openPorts: async () => ports, inProcess: new InProcessLocks() };
      await new PortsSemaphore(world, "/job.lock").status();
    },
  ],
];

describe.each(openings)("%s", (_what, open) => {
  it.each([nfsLine, smbLine])("is opened without a word on a mount as we advise it: %s", async (line) => {
    expect(await opening(line, open)).toEqual({ code: "opened", warnings: [] });
  });

  it.each([
    [nfsLine, "hard", "soft"],
    [nfsLine, "hard", "softerr"],
    [nfsLine, "local_lock=none", "nocto,local_lock=none"],
    [smbLine, "cache=strict", "cache=loose"],
    [smbLine, "cache=strict", "cache=singleclient"],
  ])("is refused where a write could be lost: %s with %s → %s", async (line, from, to) => {
    expect(await opening(line.replace(`,${from},`, `,${to},`), open)).toMatchObject({ code: "UNSUPPORTED_DISK" });
  });
});

describe("a process is warned, once, of a mount", () => {
  const host = { warn: (message: string) => void warnings.push(message) };
  let warnings: string[] = [];

  it.each([
    [
      nfsLine.replace("nfs4", "nfs").replace("local_lock=none", "nolock"),
      /nolock.*exclude only programs of this machine/,
    ],
    [nfsLine.replace("nfs4", "nfs").replace("local_lock=none", "local_lock=all"), /local_lock=all/],
    [nfsLine.replace("nfs4", "nfs").replace("vers=4.2", "vers=3"), /vers=3/],
    [smbLine.replace("soft", "soft,nobrl"), /nobrl.*exclude only programs of this machine/],
    [smbLine.replace(",nolease", ""), /without nolease.*EINVAL.*Mount with nolease/],
    [smbLine.replace("closetimeo=0", "closetimeo=1"), /without closetimeo=0/],
  ])("as %s", (line, said) => {
    const ports = { ...new World({ volume: volumeOf(line) }).ports("p1") };
    const watched = { disk: ports.disk, host: { ...ports.host, ...host } };
    warnings = [];
    checkMount(watched, "/mnt/share/store");
    checkMount(watched, "/mnt/share/another");
    expect(warnings).toEqual([expect.stringMatching(said)]);
  });
});
