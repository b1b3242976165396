// The event logs on which a suite runs: memory, and every kind of disk in both modes. Each opening
// acts as another process.
import { onTestFinished } from "vitest";
import type { NewEvent, SequencedEvent } from "../../src/common.ts";
import { createCodec } from "../../src/events/erasure/erasure-codec.ts";
import type { EventStore, LogMode } from "../../src/events/model/event-store.ts";
import { memoryEvents } from "../../src/events/index.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import type { LogOptions } from "../../src/events/open/opened-log.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { realDisk, realDiskForShares } from "./names.ts";
import { makeNetworkSite, makeRealSite, makeSimulatedSite, type Site } from "./sites.ts";

export interface LogSite {
  /**
   * Another process on the same log; closed when the test ends. Memory has one process: always the
   * same store.
   */
  open(options?: LogOptions): Promise<EventStore>;
  /** False where there is only one store. */
  readonly isShared: boolean;
}

export type LogSiteMaker = () => Promise<LogSite>;

/** So small that a few appends fill several segments. */
export const smallSegments: LogOptions = { segmentBytesMax: 700 };

export const logSites: readonly [name: string, make: LogSiteMaker][] = [
  ["memoryEvents()", makeMemoryLogs],
  [`${realDisk}, mode local`, () => logsOn(makeRealSite, "local")],
  [realDiskForShares, () => logsOn(makeRealSite, "share")],
  ["the simulated disk", () => logsOn(makeSimulatedSite, "local")],
  ["the simulated network mount", () => logsOn(makeNetworkSite, "share")],
];

async function makeMemoryLogs(): Promise<LogSite> {
  const store = memoryEvents();
  onTestFinished(() => store.close());
  return { open: async () => store, isShared: false };
}

async function logsOn(make: () => Promise<Site>, mode: LogMode): Promise<LogSite> {
  const { directory, openPorts } = await make();
  const open = async (options?: LogOptions): Promise<EventStore> =>
    await openOn(await openPorts(), `${directory}/log`, { mode, ...options });
  return { open, isShared: true };
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

/** The reason of a rejected promise. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}
