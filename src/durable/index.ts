// The subpath "holdfast/durable": the mechanisms on which everything else is built, for programs that need one of
// them alone. They may change between minor versions.
import { openNodePorts } from "../ports/node/ports.ts";
import { checkOptions } from "../format/known-options.ts";
import { directoryOf } from "../ports/node/location.ts";
import type { Ports } from "../ports/ports.ts";
import type { Gate } from "./gate/gate.ts";
import { Ground, type GroundOptions } from "./liveness/ground.ts";
import { openGate as openGateOn } from "./gate/gate-record.ts";

export { Chain, type ChainEntry } from "./chain/chain.ts";
export { ensureDirectory, removeTree } from "./publish/directory.ts";
export { Gate, type GateHold, type GateOptions } from "./gate/gate.ts";
export { Ground, type GroundOptions, type KnownHolder } from "./liveness/ground.ts";
export type { Liveness, Session } from "./liveness/liveness.ts";
export type { ChainOpener, StateChain } from "./chain/state-chain.ts";
export type { ChangeSource } from "./wait/change-waiter.ts";
export type { HolderRecord } from "./liveness/holder-record.ts";
export type { HolderSession } from "./liveness/holder-session.ts";
export { putIfAbsent, replace, type PublishOptions } from "./publish/publish.ts";
export {
  RollingChain,
  type AppendOptions,
  type RollingChainOptions,
  type RollingEntry,
} from "./chain/rolling-chain.ts";
export type { Staging } from "./publish/staging.ts";
export type { HolderState } from "./liveness/liveness-judge.ts";
export type { RecordKind } from "../format/record.ts";
export type { DeltaKind } from "./chain/state-delta.ts";
export type { SlotsPerEpoch } from "./chain/epoch-rollover.ts";
export type { Clock } from "../ports/clock.ts";
export type {
  CreateFileOptions,
  Disk,
  DiskFile,
  FileStat,
  OpenFileOptions,
  SyncOptions,
  Volume,
} from "../ports/disk.ts";
export type { Hasher, Hashing } from "../ports/hasher.ts";
export type { Beating, BeatTimes, Heart, HeartOptions } from "../ports/heart.ts";
export type { Host } from "../ports/host.ts";
export type { OsLock, OsLockFile, OsLockOptions, OsLockWaiting, OsUnlocking } from "../ports/os-lock.ts";
export type { Random } from "../ports/random.ts";
export type { Watch } from "../ports/watch.ts";
export { directoryOf } from "../ports/node/location.ts";
export type { Ports } from "../ports/ports.ts";
export type { HelperThread, Threads } from "../ports/threads.ts";

/**
 * Opens the disk, clock and other ports of this machine for a directory and everything below it.
 * The directory need not exist, and nothing is created. Throws INVALID_PATH.
 */
export async function openPorts(directory: string | URL): Promise<Ports> {
  return await openNodePorts(directoryOf(directory));
}

/**
 * Joins the ground in a local directory and creates it if it does not exist. Throws NOT_A_STORE and
 * WRONG_STORE if the directory is not what `create` and `id` ask for, NEWER_FORMAT, and UNSUPPORTED_DISK for
 * a mount that loses writes.
 *
 * @example
 * ```ts
 * await using ground = await openGround("/mnt/shop/ground", { name: "till 3" });
 * await putIfAbsent(ground.staging, "/mnt/shop/leader", Buffer.from(ground.id));
 * ```
 */
export async function openGround(directory: string | URL, options?: GroundOptions): Promise<Ground> {
  checkOptions("openGround", options, { leaseMs: true, name: true, create: true, id: true });
  const path = directoryOf(directory);
  return await Ground.open(await openPorts(path), path, options);
}

/**
 * Opens the gate of `directory`: one holder at a time among all processes that open it. Throws
 * UNSUPPORTED_DISK if there are no OS locks.
 */
export async function openGate(ground: Ground, directory: string): Promise<Gate> {
  return await openGateOn(ground.ports, ground.staging, directoryOf(directory));
}
