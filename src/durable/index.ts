// The subpath "holdfast/durable": the mechanisms that everything else is made of, for programs that
// need one of them alone. They may change between minor versions.
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
export type { Disk, DiskFile, FileStat, Volume } from "../ports/disk.ts";
export { directoryOf } from "../ports/node/location.ts";
export type { Ports } from "../ports/ports.ts";

/**
 * The disk and all else of this machine, for a directory and what lies below it. It may be missing:
 * nothing is made.
 */
export async function openPorts(directory: string | URL): Promise<Ports> {
  return await openNodePorts(directoryOf(directory));
}

/** Joins the ground in a directory of this machine's file system, making it if it is not there. */
export async function openGround(directory: string | URL, options?: GroundOptions): Promise<Ground> {
  checkOptions("openGround", options, { leaseMs: true, name: true, create: true, id: true });
  const path = directoryOf(directory);
  return await Ground.open(await openPorts(path), path, options);
}

/** The gate of `directory`: one holder at a time among all processes that open it. */
export async function openGate(ground: Ground, directory: string): Promise<Gate> {
  return await openGateOn(ground.ports, ground.staging, directoryOf(directory));
}
