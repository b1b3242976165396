// The bed: one server, three guests that have mounted its share, and what scenarios need of them.
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ServerKind } from "./arguments.ts";
import { Guest, sharePath, type Place } from "./guest.ts";
import { addTap } from "./network.ts";
import type { InsideOrders } from "./outside.ts";
import { Ganesha } from "./servers/ganesha.ts";
import { Knfsd } from "./servers/knfsd.ts";
import { Samba } from "./servers/samba.ts";
import type { Server } from "./servers/server.ts";

const servers: Readonly<Record<ServerKind, new (place: Place) => Server>> = {
  nfs: Ganesha,
  knfsd: Knfsd,
  smb: Samba,
};
const guestCount = 3;
/** How long a mount that is well may take to answer. */
const answerMsMax = 15_000;

export type BedOptions = Pick<
  InsideOrders,
  "kind" | "root" | "scratch" | "work" | "minutes" | "repeat" | "mount" | "sabotage" | "fault"
>;

export class Bed {
  readonly kind: ServerKind;
  /** Of this repository. */
  readonly root: string;
  readonly server: Server;
  readonly guests: readonly Guest[];
  /** How long a scenario with load keeps it up. */
  readonly secondsOfLoad: number;
  /** How often each fault comes, at least. */
  readonly repeat: number;
  /** Only faults whose name contains it. */
  readonly fault: string;
  /** Run known-wrong variants where there are any. */
  readonly sabotage: boolean;
  /** Where logs and results go. */
  readonly work: string;
  readonly #scratch: string;
  #directories = 0;

  private constructor({ kind, root, scratch, work, minutes, repeat, mount, sabotage, fault }: BedOptions) {
    this.kind = kind;
    this.root = root;
    this.secondsOfLoad = minutes * 60;
    this.repeat = repeat;
    this.sabotage = sabotage;
    this.fault = fault;
    this.#scratch = scratch;
    this.work = work;
    const server = new servers[kind]({ scratch, work });
    this.server = server;
    const options = mount === "advised" ? server.advised : mount === "plain" ? "" : mount;
    this.guests = Array.from(
      { length: guestCount },
      (_, index) =>
        new Guest({
          name: `g${index + 1}`,
          tap: addTap(index + 1),
          place: { scratch, work },
          modules: server.clientModules,
          onStart: async (guest) => await server.mount(guest, sharePath, options),
        }),
    );
  }

  static async open(options: BedOptions): Promise<Bed> {
    const bed = new Bed(options);
    await bed.server.start();
    await Promise.all(bed.guests.map((guest) => guest.start()));
    return bed;
  }

  /** Guest `number`, from 1. */
  guest(number: number): Guest {
    const guest = this.guests[number - 1];
    if (guest === undefined) throw new RangeError(`There are ${this.guests.length} guests, no number ${number}.`);
    return guest;
  }

  /** The compiled form of a module of this repository: `src/cli/main.ts`. */
  module(path: string): string {
    return join(this.#scratch, path.replace(/\.ts$/, ".js"));
  }

  /** A directory of its own on the share, empty. The same path in every guest. */
  async directory(name: string): Promise<string> {
    const path = `${sharePath}/${name}-${++this.#directories}`;
    await this.guest(1).shell(`mkdir ${path}`);
    return path;
  }

  /**
   * Brings every guest back to a state in which a scenario can begin: without faults, and with a
   * mount that answers.
   */
  async recover(): Promise<void> {
    for (const guest of this.guests) {
      guest.resume();
      if (guest.isUp) {
        try {
          await guest.heal();
          await guest.shell(`ls ${sharePath} >/dev/null`, answerMsMax);
          continue;
        } catch {
          // Whatever it is that hangs there: a new boot does not know of it.
          await guest.kill();
        }
      }
      await guest.start();
    }
  }

  /** Writes down what a person may want to know afterwards. */
  log(text: string): void {
    appendFileSync(join(this.work, "bed.log"), `${new Date().toISOString()} ${text}\n`);
  }

  /** Writes down what the guests are doing, for a person who looks for a reason afterwards. */
  async collect(label: string): Promise<void> {
    const ask = [
      "cut -d' ' -f1 /proc/uptime",
      "for task in /proc/[0-9]*/task/[0-9]*; do",
      // A file of /proc has no size, and kernel threads have no command line.
      '  test -n "$(tr -d \'\\0\' < "$task/../../cmdline")" || continue',
      "  echo \"== $task $(cat $task/comm) $(cut -d\\  -f3 $task/stat) $(tr '\\0' ' ' < $task/../../cmdline | cut -c1-300)\"",
      '  cat "$task/wchan" "$task/stack" "$task/syscall" 2>/dev/null; echo',
      "done",
      "dmesg | tail -n 30",
      `timeout 10 find ${sharePath} | sort | tail -n 3000`,
    ].join("\n");
    await Promise.all(
      this.guests.map(async (guest) => {
        const path = join(this.work, `${guest.name}-${label.replaceAll(/\W+/g, "-")}.txt`);
        const text = await guest.shell(ask, answerMsMax).catch((error: unknown) => String(error));
        writeFileSync(path, text);
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.guests.map((guest) => guest.kill()));
    await this.server.stop();
  }
}
