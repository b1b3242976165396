// nfs-ganesha: an NFS server in user space, beside the guests.
import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Daemon, run, until } from "../command.ts";
import type { Guest, Place } from "../guest.ts";
import { bedAddress } from "../network.ts";
import type { Server } from "./server.ts";

const leaseSeconds = 20;

export class Ganesha implements Server {
  readonly about: string = `nfs-ganesha, NFSv4.2, lease ${leaseSeconds} s, no delegations`;
  readonly leaseMs: number = leaseSeconds * 1000;
  readonly clientModules: readonly string[] = ["nfsv4"];
  readonly advised: string = "hard,proto=tcp,lookupcache=positive";
  readonly #work: string;
  #daemon: Daemon | undefined;

  constructor({ work }: Place) {
    this.#work = work;
    const exported = join(work, "export");
    mkdirSync(exported, { recursive: true });
    // Its own state: in this namespace only, but longer than one life of the server.
    run("mount -t tmpfs tmpfs /var/lib/nfs");
    mkdirSync("/var/lib/nfs/ganesha");
    mkdirSync("/var/run/ganesha", { recursive: true });
    writeFileSync(
      join(work, "ganesha.conf"),
      [
        `NFS_CORE_PARAM{Bind_addr=${bedAddress};Protocols=4;Enable_NLM=false;Enable_RQUOTA=false;}`,
        `NFSv4{Graceless=true;RecoveryBackend=fs;Lease_Lifetime=${leaseSeconds};Delegations=false;}`,
        `EXPORT{Export_Id=1;Path=${exported};Pseudo=/export;Access_Type=RW;Squash=No_Root_Squash;SecType=sys;Protocols=4;Transports=TCP;FSAL{Name=VFS;}}`,
      ].join("\n"),
    );
  }

  async start(): Promise<void> {
    const path = (name: string): string => join(this.#work, name);
    const args = ["-F", "-f", path("ganesha.conf"), "-L", path("ganesha.log"), "-p", path("ganesha.pid")];
    this.#daemon = new Daemon("ganesha.nfsd", args, { log: path("ganesha.out") });
    await until(`Ganesha to listen; see ${path("ganesha.log")}`, 20_000, () => isListening(2049));
  }

  async mount(guest: Guest, path: string, options: string): Promise<void> {
    const comma = options === "" ? "" : `,${options}`;
    await guest.shell(`mkdir -p ${path} && mount -t nfs4 -o vers=4.2${comma} ${bedAddress}:/export ${path}`);
  }

  async restart(downMs: number): Promise<void> {
    await this.stop();
    await sleep(downMs);
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#daemon?.kill();
  }
}

/** True, or undefined when nothing listens on the port yet. */
export async function isListening(port: number): Promise<true | undefined> {
  return await new Promise((resolve) => {
    const socket = connect(port, bedAddress);
    const answer = (is: true | undefined): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once("connect", () => answer(true)).once("error", () => answer(undefined));
  });
}
