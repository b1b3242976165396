// A simulated server with machines and processes whose calls are answered at once, whose time
// passes only by hand, and in which one call can be made to fail.
import type { Volume } from "../../src/ports/disk.ts";
import type { TreeNode } from "../../src/ports/memory/tree.ts";
import type { Ports } from "../../src/ports/ports.ts";
import type { Staging } from "../../src/durable/publish/staging.ts";
import type { SimCall } from "../../src/testing/sim/call.ts";
import { Machine } from "../../src/testing/sim/machine.ts";
import { SimOsLocks } from "../../src/testing/sim/os-locks.ts";
import { createSimPorts } from "../../src/testing/sim/process.ts";
import { SimServer, type ServerQuirks } from "../../src/testing/sim/server.ts";
import type { CrashProfile } from "../../src/testing/sim/persistence.ts";

export const local: Volume = { kind: "local", type: "ext4", mountOptions: [] };
export const nfs: Volume = { kind: "network", type: "nfs4", mountOptions: [] };

/** Errnos that the simulated disk can be told to fail with. */
export const errnos = ["EIO", "ENOSPC", "EACCES", "ESTALE", "EBUSY"];
/** The request was done, and its answer got lost on the way or was spoiled by a repetition. */
export const lostReplies = ["done, but the reply is lost", "done, and the repeated request fails"];

export interface WorldOptions {
  readonly quirks?: ServerQuirks;
  readonly volume?: Volume;
  readonly profile?: CrashProfile;
}

/** How a call of a process ends: with an errno, or in one of the `lostReplies`. */
export interface Fault {
  readonly process: string;
  /** Which call: by its number from 1, or the first one whose description begins so. */
  readonly at: number | string;
  readonly label: string;
  /** Every call from there on, not just that one. */
  readonly lasting: boolean;
}

interface Waiting {
  readonly process: string;
  readonly call: SimCall<unknown>;
  readonly answer: () => void;
}

export class World {
  readonly server: SimServer;
  /** The true time; every machine's monotonic clock. */
  nowMs = 1_700_000_000_000;
  /** What each process did, in order: "link /a → /b". */
  readonly calls: { readonly process: string; readonly what: string }[] = [];
  /** What the fault has spoiled. */
  spoiled: string[] = [];
  readonly #osLocks: SimOsLocks;
  readonly #machines = new Map<string, Machine>();
  readonly #ports = new Map<string, Ports>();
  readonly #dead = new Set<string>();
  #waiting: Waiting[] = [];
  #doom: { readonly process: string; left: number } | undefined;
  #fault: Fault | undefined;
  #faultCalls = 0;
  #hasCome = false;

  constructor({ quirks = {}, volume = local, profile = "ext4-ordered" }: WorldOptions = {}) {
    this.server = new SimServer({ profile, quirks, volume, now: () => this.nowMs });
    this.#osLocks = new SimOsLocks(quirks.osLocks);
  }

  machine(name: string): Machine {
    const machine = this.#machines.get(name) ?? new Machine(name);
    this.#machines.set(name, machine);
    return machine;
  }

  /** The ports of a process; always the same for one name. Its heart beats `beatsMax` times. */
  ports(process: string, machine = "machine", beatsMax = 1_000_000): Ports {
    const known = this.#ports.get(process);
    if (known !== undefined) return known;
    const ports = createSimPorts({
      name: process,
      machine: this.machine(machine),
      server: this.server,
      osLocks: this.#osLocks,
      now: () => this.nowMs,
      observed: () => undefined,
      pid: 100 + this.#ports.size,
      beatsMax,
      errors: { errnos },
      processState: () => "alive",
      park: (call) => this.#park(process, call),
    });
    this.#ports.set(process, ports);
    return ports;
  }

  /** A staging place of its own for a process that has no ground. */
  async staging(process: string, directory = "/temp"): Promise<Staging> {
    const { disk, random } = this.ports(process);
    if (this.server.find(directory) === undefined) await disk.mkdir(directory);
    return { disk, random, directory: async () => directory };
  }

  /** Killed: none of its calls ever comes back, and the kernel frees its locks. */
  kill(process: string): void {
    this.#dead.add(process);
    this.#waiting = this.#waiting.filter((waiting) => waiting.process !== process);
    this.#osLocks.freeAllOf(process);
    this.server.closeHandlesOf(process);
  }

  /**
   * Lets `action` run until `process` makes its call number `at`, which it does not survive. So much time passes
   * meanwhile.
   */
  async killAtCall(process: string, at: number, action: () => Promise<unknown>, ms = 0): Promise<void> {
    this.#doom = { process, left: at };
    // It never comes back when the kill does, and its result does not matter.
    action().catch(() => undefined);
    await this.settle();
    if (ms > 0) await this.advance(ms);
    this.#doom = undefined;
  }

  /** Lets the time pass, and every process do what is due on the way. */
  async advance(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    for (;;) {
      await this.settle();
      const dueMs = Math.min(...this.#waiting.map(({ call }) => call.dueMs ?? Infinity));
      if (dueMs > endMs) break;
      this.nowMs = Math.max(this.nowMs, dueMs);
    }
    this.nowMs = endMs;
    await this.settle();
  }

  /** Until no process can do anything without more time. */
  async settle(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve));
    while (this.#answerWaiting());
  }

  /** Runs `action` with a fault; true when it came to that call. Afterwards the disk is healed. */
  async withFault(fault: Fault, action: () => Promise<void>): Promise<boolean> {
    this.#fault = fault;
    this.#faultCalls = 0;
    this.#hasCome = false;
    this.spoiled = [];
    try {
      await action();
    } finally {
      this.#fault = undefined;
    }
    return this.#hasCome;
  }

  /** Every file below `path` with its content; directories without entries end in a slash. */
  tree(path: string): Record<string, string> {
    const found: Record<string, string> = {};
    const walk = (node: TreeNode | undefined, at: string): void => {
      if (node === undefined) return;
      if (node.kind === "file") found[at] = Buffer.from(node.bytes).toString();
      else if (node.entries.size === 0) found[`${at}/`] = "";
      else for (const [name, child] of node.entries) walk(child, `${at}/${name}`);
    };
    walk(this.server.find(path), path);
    return found;
  }

  #park<T>(process: string, call: SimCall<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#doom?.process === process && --this.#doom.left === 0) this.kill(process);
      if (this.#dead.has(process)) return;
      const answer = (): void => {
        try {
          resolve(this.#carryOut(process, call));
        } catch (error) {
          reject(error);
        }
      };
      if (call.outcomes().length > 0) answer();
      else this.#waiting.push({ process, call, answer });
    });
  }

  #carryOut<T>(process: string, call: SimCall<T>): T {
    const what = `${call.operation} ${call.detail}`;
    this.calls.push({ process, what });
    const outcomes = call.outcomes();
    const spoilt = this.#isSpoilt(process, what)
      ? outcomes.find(({ label }) => label === this.#fault?.label)
      : undefined;
    if (spoilt !== undefined) this.spoiled.push(what);
    // Another process may have waited for what this call does.
    if (this.#waiting.length > 0) setImmediate(() => this.#answerWaiting());
    return (spoilt ?? outcomes[0])!.run();
  }

  #isSpoilt(process: string, what: string): boolean {
    if (this.#fault?.process !== process) return false;
    const { at, lasting } = this.#fault;
    this.#faultCalls++;
    if (this.#hasCome) return lasting;
    this.#hasCome = typeof at === "number" ? this.#faultCalls === at : what.startsWith(at);
    return this.#hasCome;
  }

  /** False when there was nothing to answer. */
  #answerWaiting(): boolean {
    const before = this.#waiting.length;
    for (const waiting of [...this.#waiting]) {
      // One by one: an answer may take what the next one waits for.
      if (waiting.call.outcomes().length === 0) continue;
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      waiting.answer();
    }
    return this.#waiting.length < before;
  }
}
