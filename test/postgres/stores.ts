// Stores in the server of this test run: each test has its own, and each opening acts as another
// process.
import { randomUUID } from "node:crypto";
import { inject, onTestFinished } from "vitest";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { openNodeHost } from "../../src/ports/node/host.ts";
import { makeScratch } from "../../src/ports/node/scratch.ts";
import { nodeRandom } from "../../src/ports/node/random.ts";
import { PgStore, type PgPorts, type PostgresOptions } from "../../src/postgres/pg-store.ts";
import type { NameLocks } from "../../src/part/leases.ts";
import type { PathLocksWorld } from "../locks/path-locks-contract.ts";
import type { PgObjects } from "../../src/postgres/objects/pg-objects.ts";
import { dayMs, type AgingSite } from "../objects/contract/lifecycle.ts";
import type { StoreSite } from "../objects/object-sites.ts";
import type { LogSite } from "../sites/event-logs.ts";
import { WaitCounter } from "../waiting.ts";
import { startServer, type PostgresServer, type ServerOptions } from "./server.ts";

/** The location of the server of this run. */
export function serverUrl(): string {
  return inject("postgres");
}

/** Starts a server of the caller's own, of the same version as that of this run. */
export async function startOwnServer(options: Omit<ServerOptions, "bin"> = {}): Promise<PostgresServer> {
  return await startServer({ bin: inject("postgresBin"), ...options });
}

async function nodePorts(): Promise<PgPorts> {
  return { clock: nodeClock, random: nodeRandom, host: await openNodeHost(), makeScratch };
}

export async function openPgStore(
  store: string,
  { url = serverUrl(), ...options }: PostgresOptions & { readonly url?: string } = {},
): Promise<PgStore> {
  const opened = await PgStore.open(url, { store, ...options }, await nodePorts());
  onTestFinished(() => opened.close());
  return opened;
}

export async function makePgLogs(): Promise<LogSite> {
  const store = randomUUID();
  return {
    isShared: true,
    open: async () => await (await openPgStore(store)).events("main"),
  };
}

/** Processes with path locks in one store. */
export class PgLocksWorld implements PathLocksWorld {
  readonly #store: string = randomUUID();
  readonly #waits = new WaitCounter();
  readonly #opened: NameLocks[] = [];

  get waiting(): number {
    return this.#waits.count;
  }

  async open({ leaseMs, timeoutMs }: { leaseMs?: number; timeoutMs?: number } = {}): Promise<NameLocks> {
    const ports = this.#waits.on(await nodePorts());
    const store = await PgStore.open(serverUrl(), { store: this.#store, leaseMs }, ports);
    const locks = await store.locks({ timeoutMs });
    const close = locks.close.bind(locks);
    locks.close = async () => {
      await close();
      await store.close();
    };
    this.#opened.push(locks);
    return locks;
  }

  async end(): Promise<void> {
    for (const locks of this.#opened) await locks.close();
  }
}

export async function makePgObjects(): Promise<StoreSite> {
  const store = randomUUID();
  return { open: async (options) => await (await openPgStore(store)).objects(options) };
}

export async function makeAgingPgObjects(): Promise<AgingSite> {
  const store = randomUUID();
  return {
    open: async (options) => await (await openPgStore(store)).objects(options),
    nowMs: async () => Date.now(),
    collectAfter: async (days) => {
      const objects = (await (await openPgStore(store)).objects()) as PgObjects;
      await objects.collectAs({ aheadMs: days * dayMs });
    },
  };
}
