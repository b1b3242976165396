// Samba: an SMB server in user space, beside the guests.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Daemon, run, until } from "../command.ts";
import type { Guest, Place } from "../guest.ts";
import { bedAddress } from "../network.ts";
import { isListening } from "./ganesha.ts";
import type { Server } from "./server.ts";

/**
 * The bed's network cannot be reached from outside, so this protects nothing; but clients sign only
 * with a password.
 */
const password = "share";
const keepalive = { idle: 8, interval: 4, count: 3 };

export class Samba implements Server {
  readonly about: string = "Samba, SMB 3.1.1, TCP keepalive 8/4/3";
  /** The time after which the server's TCP gives a silent client up. */
  readonly leaseMs: number = (keepalive.idle + keepalive.interval * keepalive.count) * 1000;
  // cifs asks for its ciphers by name when it mounts, and in a guest nothing loads them then.
  readonly clientModules: readonly string[] =
    "md4 md5 hmac cmac sha256_generic sha512_generic aes_generic ecb ctr ccm ghash-generic gcm arc4 nls_utf8 cifs".split(
      " ",
    );
  // Without `nolease` a file cannot be opened by two of its names at once: EINVAL, because the
  // client uses one lease key for both.
  readonly advised: string = "closetimeo=0,acregmax=0,acdirmax=1,echo_interval=4,nolease";
  readonly login: readonly string[];
  readonly #work: string;
  #daemon: Daemon | undefined;

  constructor({ work }: Place) {
    this.#work = work;
    this.login = [join(work, "smb.conf"), bedAddress, "root", password];
    const directory = (name: string): string => {
      const path = join(work, name);
      mkdirSync(path, { recursive: true });
      return path;
    };
    const own = directory("samba");
    const { idle, interval, count } = keepalive;
    writeFileSync(
      join(work, "smb.conf"),
      [
        "[global]",
        "server role = standalone server",
        "disable netbios = yes",
        "smb ports = 445",
        `interfaces = ${bedAddress}/24`,
        "bind interfaces only = yes",
        "load printers = no",
        "server min protocol = SMB3_11",
        `socket options = TCP_NODELAY SO_KEEPALIVE TCP_KEEPIDLE=${idle} TCP_KEEPINTVL=${interval} TCP_KEEPCNT=${count}`,
        ...["private", "lock", "state", "cache", "pid"].map(
          (kind) => `${kind} ${kind === "private" ? "dir" : "directory"} = ${own}`,
        ),
        `ncalrpc dir = ${own}/ncalrpc`,
        `log file = ${work}/samba.log`,
        "[share]",
        `path = ${directory("export")}`,
        "read only = no",
        "force user = root",
      ].join("\n"),
    );
    run(`smbpasswd -c ${join(work, "smb.conf")} -a -s root`, `${password}\n${password}\n`);
  }

  async start(): Promise<void> {
    const path = (name: string): string => join(this.#work, name);
    const args = ["--foreground", "--no-process-group", `--configfile=${path("smb.conf")}`];
    this.#daemon = new Daemon("smbd", args, { log: path("samba.out") });
    await until(`Samba to listen; see ${path("samba.log")}`, 20_000, () => isListening(445));
  }

  async mount(guest: Guest, path: string, options: string): Promise<void> {
    const comma = options === "" ? "" : `,${options}`;
    const all = `username=root,password=${password},vers=3.1.1${comma}`;
    // The reason is in the kernel's log only.
    const mount = `mount -t cifs -o ${all} //${bedAddress}/share ${path} || { dmesg | grep CIFS | tail -3 >&2; false; }`;
    await guest.shell(`mkdir -p ${path} && { ${mount}; }`);
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
