// A simulated server on the bench: its disks as several machines see them, its crash images as
// text, and calls that wait to be decided.
import { describeError } from "../../src/testing/explorer/describe.ts";
import { errnoOf } from "../../src/ports/disk-error.ts";
import { parkNever, type SimCall, type Park } from "../../src/testing/sim/call.ts";
import { createSimDisk, type InjectedErrors, type SimDisk } from "../../src/testing/sim/disk.ts";
import { Machine } from "../../src/testing/sim/machine.ts";
import type { CrashProfile } from "../../src/testing/sim/persistence.ts";
import { SimServer, type ServerQuirks } from "../../src/testing/sim/server.ts";
import type { Volume } from "../../src/ports/disk.ts";
import type { TreeNode } from "../../src/ports/memory/tree.ts";

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

export interface ProcessOptions {
  readonly process?: string;
  readonly errors?: InjectedErrors;
  readonly isPermanent?: (path: string) => boolean;
}

export class Bench {
  readonly server: SimServer;
  nowMs = 1_000_000;
  readonly #machines = new Map<string, Machine>();

  constructor(quirks: ServerQuirks = {}, profile: CrashProfile = "share", kind: Volume["kind"] = "network") {
    const volume = { kind, type: "simulated", mountOptions: [] };
    this.server = new SimServer({ profile, quirks, volume, now: () => this.nowMs });
  }

  machine(name: string): Machine {
    const machine = this.#machines.get(name) ?? new Machine(name);
    this.#machines.set(name, machine);
    return machine;
  }

  /** A process on that machine, all of whose calls go well at once. */
  disk(machine: string, { process = machine, ...options }: ProcessOptions = {}): SimDisk {
    return createSimDisk({ server: this.server, machine: this.machine(machine), process, park: parkNever, ...options });
  }

  /** A process on that machine whose calls wait until they are decided. */
  decided(machine: string, { process = machine, ...options }: ProcessOptions = {}): Decided {
    const parked: Parked[] = [];
    const park: Park = <T>(call: SimCall<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        parked.push({ call, resolve: resolve as (value: unknown) => void, reject });
      });
    const server = this.server;
    return new Decided(createSimDisk({ server, machine: this.machine(machine), process, park, ...options }), parked);
  }

  /** Everything on the disk, as all machines see it now. */
  get state(): string {
    return stateOf(this.server);
  }

  /** Every state that a power cut may leave now, each once, in order. */
  get crashStates(): string[] {
    const states = new Set<string>();
    for (let index = 0; index < this.server.crashImageCount(); index++)
      states.add(stateOf(this.server.crashImage(index)));
    return [...states].sort();
  }
}

interface Parked {
  readonly call: SimCall<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A call that began and how it went on: each of its steps waits to be decided. */
export class Decided {
  readonly #disk: SimDisk;
  readonly #parked: Parked[];

  constructor(disk: SimDisk, parked: Parked[]) {
    this.#disk = disk;
    this.#parked = parked;
  }

  /**
   * Begins it; `answer` is undefined until it is over, then what it gave, or the POSIX name of its
   * failure.
   */
  async begin(action: (disk: SimDisk) => Promise<unknown>): Promise<{ readonly answer: unknown }> {
    const begun: { answer: unknown } = { answer: undefined };
    action(this.#disk).then(
      (value) => (begun.answer = value instanceof Uint8Array ? textOf(value) : (value ?? "ok")),
      (error: unknown) => (begun.answer = errnoOf(error) ?? describeError(error)),
    );
    await turn();
    return begun;
  }

  /** The oldest call that waits. */
  get call(): SimCall<unknown> {
    return this.#oldest.call;
  }

  /** The ways in which it may end now; the ordinary one is "". */
  get labels(): string[] {
    return this.call.outcomes().map(({ label }) => label);
  }

  async take(label: string = ""): Promise<void> {
    const { call, resolve, reject } = this.#oldest;
    const outcome = call.outcomes().find((each) => each.label === label);
    if (outcome === undefined) throw new Error(`"${label}" is none of "${this.labels.join('", "')}"`);
    this.#parked.shift();
    try {
      resolve(outcome.run());
    } catch (error) {
      reject(error);
    }
    await turn();
  }

  /** Begins it and ends it at once in the given way. */
  async answer(action: (disk: SimDisk) => Promise<unknown>, label: string = ""): Promise<unknown> {
    const begun = await this.begin(action);
    await this.take(label);
    return begun.answer;
  }

  /** The ways in which it could end; then it ends in the ordinary one. */
  async labelsOf(action: (disk: SimDisk) => Promise<unknown>): Promise<string[]> {
    await this.begin(action);
    const { labels } = this;
    await this.take();
    return labels;
  }

  get #oldest(): Parked {
    const [oldest] = this.#parked;
    if (oldest === undefined) throw new Error("no call waits");
    return oldest;
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** `a=text d/ d/b=` with zero bytes as `_`; "(nothing)" for an empty disk. */
function stateOf(server: SimServer): string {
  const lines: string[] = [];
  const walk = (node: TreeNode, path: string): void => {
    if (node.kind === "file") return void lines.push(`${path}=${textOf(node.bytes).replaceAll("\0", "_")}`);
    if (path !== "") lines.push(`${path}/`);
    for (const [name, child] of node.entries) walk(child, path === "" ? name : `${path}/${name}`);
  };
  walk(server.tree.root, "");
  return lines.length === 0 ? "(nothing)" : lines.sort().join(" ");
}
