// A guest: a machine with a kernel, page cache, clock, host name and process table of its own,
// which can be killed, paused, cut off and started again.
import { join } from "node:path";
import { AgentLink } from "./agent-link.ts";
import { Daemon, until } from "./command.ts";
import { agentPort } from "./guest/agent-protocol.ts";
import type { Tap } from "./network.ts";
import { Script, within, type ScriptOptions } from "./script.ts";

/** `scratch`: where the compiled code is. `work`: where logs and disks go. */
export interface Place {
  readonly scratch: string;
  readonly work: string;
}

export interface GuestOptions {
  readonly name: string;
  readonly tap: Tap;
  readonly place: Place;
  /** Kernel modules that it needs. */
  readonly modules: readonly string[];
  /** A file that becomes its block device /dev/ubda. */
  readonly blockFile?: string;
  /** Run after each start, when the agent is there. */
  readonly onStart: (guest: Guest) => Promise<void>;
}

/** Where every guest has the share. */
export const sharePath = "/mnt/share";

const memory = "700M";
const startMsMax = 60_000;
const shellMsMax = 60_000;

export class Guest {
  readonly #options: GuestOptions;
  #daemon: Daemon | undefined;
  #clockMs = 0;
  #link: AgentLink | undefined;

  constructor(options: GuestOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }
  get address(): string {
    return this.#options.tap.address;
  }
  /**
   * What must be added to its monotonic clock to get ours, to about a millisecond: each boot begins
   * at another time.
   */
  get clockMs(): number {
    return this.#clockMs;
  }
  get isUp(): boolean {
    return this.#link !== undefined;
  }

  /** Also again after `kill`: the same name and address, another boot. */
  async start(): Promise<void> {
    const { name, tap, place, modules, blockFile, onStart } = this.#options;
    const log = join(place.work, `${name}.log`);
    const uml = [
      `mem=${memory}`,
      ...["rootfstype=hostfs", "rootflags=/", "ro", "quiet", "con=null", "con0=null,fd:1", "con1=null"],
      `init=${join(place.scratch, "init.sh")}`,
      `vec0:transport=tap,ifname=${tap.device},depth=128,mac=${tap.mac}`,
      ...(blockFile === undefined ? [] : [`ubd0=${blockFile}`]),
      ...[`NAME=${name}`, `IP=${tap.address}`, `NODE=${process.execPath}`, `MODULES=${modules.join(",")}`],
      `AGENT=${join(place.scratch, "test/shares/guest/agent.js")}`,
    ];
    // Its memory is a file: in RAM, or every page that the guest touches would be written to a
    // disk.
    const daemon = new Daemon("linux.uml", uml, { log, env: { TMPDIR: "/dev/shm" } });
    this.#daemon = daemon;
    this.#link = await until(`the agent of ${name}; see ${log}`, startMsMax, async () => {
      if (daemon.isOver) throw new Error(`${name} ended while it started; see ${log}`);
      return await AgentLink.find(tap.address);
    });
    this.#clockMs = await this.#compareClocks();
    await onStart(this);
  }

  /** As by a power cut: nothing that its kernel had not sent is ever sent. */
  async kill(): Promise<void> {
    this.#link?.close();
    this.#link = undefined;
    // A stopped process dies of SIGKILL too.
    await this.#daemon?.kill();
    this.#daemon = undefined;
  }

  /** The whole machine stands still, as a suspended laptop does. Its packets wait. */
  pause(): void {
    this.#daemon?.stop();
  }
  resume(): void {
    this.#daemon?.continue();
  }

  /** Runs a compiled module. */
  run<Message>(module: string, args: readonly string[], options?: ScriptOptions<Message>): Script<Message> {
    return new Script<Message>(this.#getLink(), module, args, options);
  }

  /** Runs a line of shell to its end, and gives what it said; rejects when it fails. */
  async shell(command: string, msMax: number = shellMsMax): Promise<string> {
    const link = this.#getLink();
    const ran = new Promise<string>((resolve, reject) => {
      const id = link.order({ order: "shell", command }, (report) => {
        link.forget(id);
        if (report?.kind !== "ran") reject(new Error(`${this.name} went down during: ${command}`));
        else if (report.code === 0) resolve(report.stdout);
        else reject(new Error(`${this.name}: "${command}" ended with ${report.code}: ${report.stderr.trim()}`));
      });
    });
    return await within(msMax, ran, `${this.name}: ${command}`);
  }

  /**
   * No packet comes in or goes out any more, except those of the bed's own connection. No peer is
   * told.
   */
  async cut(): Promise<void> {
    await this.#drop("");
  }

  /** That part of all packets is lost, in both directions. */
  async lose(part: number): Promise<void> {
    await this.#drop(`-m statistic --mode random --probability ${part}`);
  }

  /** What it sends leaves so much later; orders from the bed are answered later too. */
  async delay(ms: number): Promise<void> {
    await this.shell(`tc qdisc replace dev vec0 root netem delay ${ms}ms`);
  }

  /** Ends `cut`, `lose` and `delay`. */
  async heal(): Promise<void> {
    await this.shell(
      "iptables-legacy -F INPUT; iptables-legacy -F OUTPUT; tc qdisc del dev vec0 root 2>/dev/null; true",
    );
  }

  /** The best of several tries: the one that took the least time has the least doubt. */
  async #compareClocks(): Promise<number> {
    let best = { tookMs: Infinity, offsetMs: 0 };
    for (let round = 0; round < 8; round++) {
      const askedMs = monotonicMs();
      const itsMs = await this.#askClock();
      const tookMs = monotonicMs() - askedMs;
      if (tookMs < best.tookMs) best = { tookMs, offsetMs: askedMs + tookMs / 2 - itsMs };
    }
    return best.offsetMs;
  }

  async #askClock(): Promise<number> {
    const link = this.#getLink();
    return await new Promise((resolve, reject) => {
      const id = link.order({ order: "clock" }, (report) => {
        link.forget(id);
        if (report?.kind === "clock") resolve(report.ms);
        else reject(new Error(`${this.name} went down.`));
      });
    });
  }

  async #drop(match: string): Promise<void> {
    const rules = [
      `iptables-legacy -F INPUT; iptables-legacy -F OUTPUT`,
      `iptables-legacy -A INPUT -i vec0 -p tcp ! --dport ${agentPort} ${match} -j DROP`,
      `iptables-legacy -A OUTPUT -o vec0 -p tcp ! --sport ${agentPort} ${match} -j DROP`,
    ];
    await this.shell(rules.join(" && "));
  }

  #getLink(): AgentLink {
    if (this.#link === undefined) throw new Error(`${this.name} is down.`);
    return this.#link;
  }
}

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
