// A log that a test opens several times, each time as another program would: with other schemas,
// with keys or without, on the real disk or in memory.
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { NewEvent } from "../../src/common.ts";
import { createCodec } from "../../src/events/erasure/erasure-codec.ts";
import { DirectorySubjectKeys } from "../../src/events/erasure/directory-keys.ts";
import type { EventStore, EventStoreOptions, SubjectKeys } from "../../src/events/model/event-store.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";

export const kinds = ["disk", "memory"] as const;
export type Kind = (typeof kinds)[number];

export class CodecWorld {
  readonly kind: Kind;
  /** Has the log in `log`, and the keys in `keys`. */
  readonly root: string;
  readonly ports: Ports;
  readonly #opened: EventStore[] = [];

  private constructor(kind: Kind, root: string, ports: Ports) {
    this.kind = kind;
    this.root = root;
    this.ports = ports;
  }

  /** Closed at the end of the test. */
  static async make(kind: Kind): Promise<CodecWorld> {
    const root = await mkdtemp(join(tmpdir(), "holdfast-codec-"));
    const ports = await openNodePorts(root);
    const world =
      kind === "disk" ? new CodecWorld(kind, root, ports) : new CodecWorld(kind, "/world", createMemoryPorts(ports));
    onTestFinished(async () => {
      await world.#end();
      await rm(root, { recursive: true, force: true });
    });
    return world;
  }

  get directory(): string {
    return `${this.root}/log`;
  }

  async open<E extends NewEvent = NewEvent>(options: EventStoreOptions<E> = {}): Promise<EventStore<E>> {
    const { ports, directory } = this;
    const store = new LogEventStore<E>({ ports, directory, codec: createCodec(options) }, options);
    this.#opened.push(store as unknown as EventStore);
    return await store.open();
  }

  /** As another process opens them each time. */
  async openKeys(path = `${this.root}/keys`, disk: Disk = this.ports.disk): Promise<SubjectKeys> {
    return await DirectorySubjectKeys.open({ ...this.ports, disk }, path);
  }

  /** The content of every file, by its path. */
  async files(path = this.root): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    await this.#collect(path, found);
    return found;
  }

  async #collect(path: string, found: Map<string, string>): Promise<void> {
    for (const name of this.kind === "disk" ? await readdir(path) : await this.ports.disk.list(path)) {
      const child = `${path}/${name}`;
      const { kind } = await this.ports.disk.stat(child);
      if (kind === "directory") await this.#collect(child, found);
      else found.set(child, await this.#read(child));
    }
  }

  async #read(path: string): Promise<string> {
    if (this.kind === "disk") return (await readFile(path)).toString("latin1");
    return Buffer.from(await this.ports.disk.readFile(path, 2 ** 26)).toString("latin1");
  }

  async #end(): Promise<void> {
    for (const store of this.#opened) await store.close();
  }
}

export async function allOf<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of source) all.push(each);
  return all;
}
