// A log that a test opens several times, each time as another process would: on the real disk, or
// in memory.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { NewEvent } from "../../../src/common.ts";
import { createCodec } from "../../../src/events/erasure/erasure-codec.ts";
import type { EventStore } from "../../../src/events/model/event-store.ts";
import { LogEventStore } from "../../../src/events/log-store.ts";
import { createMemoryPorts } from "../../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../../src/ports/node/ports.ts";
import type { Ports } from "../../../src/ports/ports.ts";

export const kinds = ["disk", "memory"] as const;
export type Kind = (typeof kinds)[number];

export interface OpenOptions {
  readonly leaseMs?: number;
  /** Changes the ports that this process gets. */
  readonly tamper?: (ports: Ports) => Ports;
}

export class LogWorld {
  readonly directory: string;
  readonly kind: Kind;
  readonly #ports: () => Promise<Ports>;
  readonly #opened: EventStore[] = [];

  private constructor(kind: Kind, directory: string, ports: () => Promise<Ports>) {
    this.kind = kind;
    this.directory = directory;
    this.#ports = ports;
  }

  /** Closed at the end of the test. */
  static async make(kind: Kind = "memory"): Promise<LogWorld> {
    const world = kind === "disk" ? await LogWorld.#onDisk() : await LogWorld.#inMemory();
    onTestFinished(() => world.end());
    return world;
  }

  static async #onDisk(): Promise<LogWorld> {
    const directory = await mkdtemp(join(tmpdir(), "holdfast-events-"));
    return new LogWorld("disk", directory, () => openNodePorts(directory));
  }

  static async #inMemory(): Promise<LogWorld> {
    const ports = createMemoryPorts(await openNodePorts(tmpdir()));
    return new LogWorld("memory", "/log", async () => ports);
  }

  async ports(): Promise<Ports> {
    return await this.#ports();
  }

  async open<E extends NewEvent = NewEvent>({ leaseMs = 30_000, tamper = (ports) => ports }: OpenOptions = {}): Promise<
    EventStore<E>
  > {
    const ports = tamper(await this.ports());
    const { directory } = this;
    const store = new LogEventStore<E>({ ports, directory, codec: createCodec({}) }, { leaseMs });
    this.#opened.push(store as unknown as EventStore);
    return await store.open();
  }

  async end(): Promise<void> {
    for (const store of this.#opened) await store.close();
    if (this.kind === "disk") await rm(this.directory, { recursive: true, force: true });
  }
}

/** The same ports with some calls of the disk replaced. */
export function withDisk(ports: Ports, calls: Partial<Ports["disk"]>): Ports {
  const disk = new Proxy(ports.disk, {
    get: (target, name) => {
      const value: unknown = Reflect.get(calls, name) ?? Reflect.get(target, name, target);
      // The real disk has private fields.
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  return { ...ports, disk };
}
