// Errors that name the holder of a semaphore: LOCK_TIMEOUT for a waiter, NOT_HELD for a release.
import type { BlockingLock } from "../../common.ts";
import { holderInfo } from "../../durable/liveness/holder-record.ts";
import { holdfastError } from "../../errors.ts";
import type { Ports } from "../../ports/ports.ts";
import type { LockRecord } from "./lock-file.ts";
import type { Obstacle } from "./protocol.ts";
import { findFate } from "./owner.ts";
import type { Observation } from "./observe.ts";

export function timedOut(ports: Ports, path: string, waitedMs: number, obstacle: Obstacle): Error {
  const { observation, why } = obstacle;
  const record = findRecord(observation);
  const holder = record === undefined ? "is held" : `is held by ${describeHolder(record)}`;
  const message = `${path} ${holder}: ${why}. Waited ${Math.round(waitedMs)} ms (option timeoutMs).`;
  const blockedBy = record === undefined ? [] : [blockingLock(ports, path, record)];
  return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy });
}

/** `who`: the process that was expected to hold the lock. */
export function notHeld(path: string, who: string, observation: Observation): Error {
  const record = findRecord(observation);
  const state =
    observation.kind === "free"
      ? "no process holds it"
      : record === undefined
        ? "what is there has no readable record"
        : `${describeHolder(record)} holds it`;
  return holdfastError("NOT_HELD", `${path} is not held by ${who}: ${state}.`, { path });
}

/** `process 12345 on till3 since 2026-11-15T21:02:21Z ("deploy")`. */
function describeHolder({ pid, host, timestamp, tag }: LockRecord): string {
  const where = host === undefined ? "" : ` on ${host}`;
  const what = tag === undefined ? "" : ` (${JSON.stringify(tag)})`;
  return `process ${pid}${where} since ${sinceOf(timestamp).toISOString()}${what}`;
}

/** A lock file records one time, which is used for all times. Fields that it does not record are empty. */
export function blockingLock(ports: Ports, path: string, record: LockRecord): BlockingLock {
  const since = sinceOf(record.timestamp);
  const { token: id = "", host = "", pid } = record;
  const holder = holderInfo(since, { id, host, pid, state: findFate(ports, record) ?? "alive" });
  const lock = { path, mode: "exact", shared: false, holder, since } as const;
  return record.tag === undefined ? lock : { ...lock, tag: record.tag };
}

function findRecord(observation: Observation): LockRecord | undefined {
  return observation.kind === "taken" ? observation.record : undefined;
}

function sinceOf(timestamp: number): Date {
  return new Date(timestamp * 1000);
}
