// The NFS server of the Linux kernel, in a guest of its own with an ext4 disk.
import { closeSync, ftruncateSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../command.ts";
import { Guest, type Place } from "../guest.ts";
import { addTap } from "../network.ts";
import type { Server } from "./server.ts";

const leaseSeconds = 15;
const diskBytes = 1024 * 1024 * 1024;

export class Knfsd implements Server {
  readonly about: string = `Linux knfsd in a guest on ext4, NFSv4.2, lease and grace ${leaseSeconds} s`;
  readonly leaseMs: number = leaseSeconds * 1000;
  readonly clientModules: readonly string[] = ["nfsv4"];
  readonly advised: string = "hard,proto=tcp,lookupcache=positive";
  readonly #guest: Guest;

  constructor(place: Place) {
    const disk = join(place.work, "knfsd.img");
    const file = openSync(disk, "w");
    ftruncateSync(file, diskBytes);
    closeSync(file);
    run(`mkfs.ext4 -q -F ${disk}`);
    this.#guest = new Guest({
      name: "server",
      tap: addTap(0),
      place,
      modules: ["ext4", "nfsd"],
      blockFile: disk,
      onStart: exportDisk,
    });
  }

  async start(): Promise<void> {
    await this.#guest.start();
  }

  async mount(guest: Guest, path: string, options: string): Promise<void> {
    const comma = options === "" ? "" : `,${options}`;
    await guest.shell(`mkdir -p ${path} && mount -t nfs4 -o vers=4.2${comma} ${this.#guest.address}:/ ${path}`);
  }

  /** The whole machine goes down: what it had not written to its disk is lost too. */
  async restart(downMs: number): Promise<void> {
    await this.stop();
    await sleep(downMs);
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#guest.kill();
  }
}

async function exportDisk(guest: Guest): Promise<void> {
  const steps = [
    "mkdir -p /mnt/disk",
    "mount -t ext4 /dev/ubda /mnt/disk",
    "mkdir -p /mnt/disk/export /mnt/disk/state/v4recovery /mnt/disk/state/rpc_pipefs",
    // Which clients may reclaim their locks after a restart is remembered there, so it lies on the
    // disk.
    "mount --bind /mnt/disk/state /var/lib/nfs",
    "touch /var/lib/nfs/etab /var/lib/nfs/rmtab",
    "mount -t nfsd nfsd /proc/fs/nfsd",
    `echo ${leaseSeconds} > /proc/fs/nfsd/nfsv4leasetime`,
    `echo ${leaseSeconds} > /proc/fs/nfsd/nfsv4gracetime`,
    "exportfs -i -o rw,no_root_squash,fsid=0,no_subtree_check,sync '*:/mnt/disk/export'",
    "rpc.mountd -N 3",
    "rpc.nfsd -N 3 -V 4.2 4",
  ];
  await guest.shell(steps.join(" && "));
}
