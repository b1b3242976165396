// One simulated machine: its clock, its boot, and the file system client through which all its processes reach the
// server.
import { createHash } from "node:crypto";
import type { Volume } from "../../ports/disk.ts";
import { ClientCache } from "./client-cache.ts";
import type { SimServer } from "./server.ts";

/** The machine that contains the disk. For its own processes the disk is local, and no cache is outdated. */
export const serverMachine = "server";

export class Machine {
  readonly name: string;
  readonly bootId: string;
  /** How far its wall clock is ahead of the true time. The explorer may change it. */
  wallOffsetMs = 0;
  #mounted: { readonly server: SimServer; readonly cache: ClientCache } | undefined;

  constructor(name: string) {
    this.name = name;
    this.bootId = bootIdOf(name);
  }

  /** The cache of `server` on this machine, shared by all its processes. */
  cacheOf(server: SimServer): ClientCache {
    this.#mounted ??= { server, cache: new ClientCache(server, this.#isServer ? {} : server.quirks) };
    if (this.#mounted.server !== server) throw new Error(`${this.name} has another disk mounted already`);
    return this.#mounted.cache;
  }

  volumeOf({ volume }: SimServer): Volume {
    return this.#isServer ? { kind: "local", type: "ext4", mountOptions: [] } : volume;
  }

  get #isServer(): boolean {
    return this.name === serverMachine;
  }

  describeCaches(): string {
    return `${this.#mounted?.cache.describe() ?? ""}|${this.wallOffsetMs}`;
  }
}

const bootIds = new Map<string, string>();

/** In the format of a kernel, so that two different ids mean two boots. */
function bootIdOf(name: string): string {
  const known = bootIds.get(name) ?? newBootId(name);
  bootIds.set(name, known);
  return known;
}

function newBootId(name: string): string {
  const digits = createHash("sha1").update(name).digest("hex").slice(0, 12);
  return `00000000-0000-4000-8000-${digits}`;
}
