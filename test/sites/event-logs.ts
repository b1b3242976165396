// Where one and the same log is tested: in memory, on the real disk and on the simulated one, in both modes; opened as often as a test wants, each time as another process.
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type { NewEvent, SequencedEvent } from "../../src/common.ts";
import { createCodec } from "../../src/events/erasure/erasure-codec.ts";
import type { EventStore, LogMode } from "../../src/events/model/event-store.ts";
import { memoryEvents } from "../../src/events/index.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import type { LogOptions } from "../../src/events/opened-log.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { nfs, World } from "./world.ts";
import { makeScratch } from "./scratch.ts";

export interface Site {
  /** Another process on the same log; closed when the test ends. Memory is one process, so there it is always the same store. */
  open(options?: LogOptions): Promise<EventStore>;
  /** False where there is but one store. */
  readonly isShared: boolean;
}

export type SiteMaker = () => Promise<Site>;

/** So small that a few appends go through several of them. */
export const smallSegments: LogOptions = { segmentBytesMax: 700 };

export const sites: readonly [name: string, make: SiteMaker][] = [
  ["memoryEvents()", makeMemorySite],
  ["the real disk, mode local", () => makeRealSite("local")],
  ["the real disk, mode share", () => makeRealSite("share")],
  ["the simulated disk", () => makeSimulatedSite("local")],
  ["the simulated network mount", () => makeSimulatedSite("share")],
];

async function makeMemorySite(): Promise<Site> {
  const store = memoryEvents();
  onTestFinished(() => store.close());
  return { open: async () => store, isShared: false };
}

async function makeRealSite(mode: LogMode): Promise<Site> {
  const directory = `${makeScratch()}/log`;
  return {
    isShared: true,
    open: async (options) => await openOn(await openNodePorts(directory), directory, { mode, ...options }),
  };
}

async function makeSimulatedSite(mode: LogMode): Promise<Site> {
  const world = mode === "local" ? new World() : new World({ volume: nfs });
  letTimePass(world);
  let count = 0;
  return {
    isShared: true,
    open: async (options) => {
      const name = `process-${++count}`;
      // Machines of their own, where machines share the disk.
      const ports = world.ports(name, mode === "local" ? "machine" : `machine-${count}`);
      return await openOn(ports, "/log", { mode, ...options });
    },
  };
}

export async function openOn(
  ports: Ports,
  directory: string,
  options: LogOptions = {},
): Promise<LogEventStore<NewEvent>> {
  const store = new LogEventStore({ ports, directory, codec: createCodec({}) }, { ...smallSegments, ...options });
  await store.open();
  onTestFinished(() => store.close());
  return store;
}

/** In a simulated world, as in ours, until the test ends. */
export function letTimePass(world: World): void {
  let isOver = false;
  const passing = (async () => {
    while (!isOver) {
      await world.advance(5);
      // Time passes: in ours as in theirs.
      await sleep(1);
    }
  })();
  onTestFinished(async () => {
    // After the stores were closed: closing takes time, too.
    isOver = true;
    await passing;
  });
}

export async function listOf<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const value of values) list.push(value);
  return list;
}

export function positionsOf(events: readonly Pick<SequencedEvent, "position">[]): number[] {
  return events.map(({ position }) => position);
}

/** From `first` to `last`. */
export function numbers(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

/** What a promise was rejected with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}
