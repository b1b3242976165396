// The API that every program imports as "holdfast".
import type { BackupInfo, BackupOptions } from "./backup/backup.ts";
import type { ListBackupsOptions, PruneOptions, PruneReport, VerifyBackupsOptions } from "./backup/manage.ts";
import type { RestoreOptions, RestoreReport } from "./backup/restore.ts";
import type { CopiedPart, CopyOptions } from "./copy-store.ts";
import type { DoctorOptions, DoctorReport } from "./doctor/index.ts";
import type { VerifyOptions, VerifyReport } from "./common.ts";
import type { AdoptedPart } from "./part/adoption.ts";
import type { AdoptOptions, Store, StoreOptions } from "./store.ts";
import type { StoreMetricsOptions } from "./store-metrics.ts";
import type { FormatReport, UpgradeOptions } from "./upgrade-store.ts";

export type {
  BlockingLock,
  Body,
  Cancel,
  Content,
  Hold,
  HolderInfo,
  LockMode,
  NameRule,
  OpenOptions,
  Problem,
  Running,
  VerifyOptions,
  VerifyReport,
  Waiting,
} from "./common.ts";
export { errorCodes, HoldfastError, isHoldfastError } from "./errors.ts";
export type { ErrorAction, ErrorCode, ErrorFacts, HoldfastErrorOf } from "./errors.ts";
export type {
  CheckVerdict,
  DoctorCheck,
  DoctorOptions,
  DoctorPeer,
  DoctorReport,
  DoctorVerdict,
} from "./doctor/index.ts";
export type { Capabilities } from "./doctor/capabilities.ts";
export type { BackupInfo, BackupOptions, BackupProgress } from "./backup/backup.ts";
export type { ListBackupsOptions, PruneOptions, PruneReport, VerifyBackupsOptions } from "./backup/manage.ts";
export type { RestoreOptions, RestoreReport } from "./backup/restore.ts";
export type { TargetOptions } from "./backup/target/open-target.ts";
export type { S3Options } from "./backup/target/s3-target.ts";
export type { CopiedPart, CopyOptions } from "./copy-store.ts";
export type { AdoptedPart } from "./part/adoption.ts";
export type {
  AdoptOptions,
  Store,
  StoreEventsOptions,
  StoreFilesOptions,
  StoreHandoffOptions,
  StoreLocksOptions,
  StoreOptions,
} from "./store.ts";
export type { StoreMetricsOptions } from "./store-metrics.ts";
export type { FormatReport, UpgradeOptions } from "./upgrade-store.ts";
export { packageVersion as version } from "./format/version.ts";
export { operationNames } from "./telemetry/operation.ts";
export type { OperationMessage, OperationName } from "./telemetry/operation.ts";
export { signalNames } from "./telemetry/signals.ts";
export type { LockSignal, PlaceSignal, SignalMessages, SignalName, TicketSignal } from "./telemetry/signals.ts";

/**
 * Opens the store at `location` and creates it if it does not exist: a directory, a `file:` URL,
 * "memory:" for a new store in memory, or `postgres://host/db?store=shop` for a store in a database,
 * which needs the package `pg` and has no tree of files. If the disk is not writable, an existing
 * store opens for reading.
 *
 * Throws NOT_A_STORE or WRONG_STORE if the directory is not what `create` and `id` ask for; INVALID_PATH for
 * a directory that is a part of its own (an event log, a box, an object store), has path locks, or lies in a
 * store; NO_PERMISSION and UNSUPPORTED_DISK before it writes anything; for a database, UNSUPPORTED with
 * `readOnly`, and as `openPostgres` does.
 */
export async function openStore(location: string | URL, options: StoreOptions = {}): Promise<Store> {
  // Loaded on demand, like the doctor: many programs use one part alone.
  const { openStore: open } = await import("./store.ts");
  return await open(location, options);
}

/**
 * Converts a directory with a single part into a store: an event log, a hand-off box, an object
 * store, or a tree of files with its locks. The part becomes the log or box `name` of the store,
 * its objects or its files, with all its data. The next call completes an interrupted one.
 *
 * Throws RESOURCE_BUSY while another process has the part open, NOT_A_STORE if there is no part,
 * FILE_EXISTS if the store already has a part of that name, INVALID_NAME, and INVALID_PATH for a
 * directory that cannot be renamed, such as a mount point.
 */
export async function adoptStore(location: string | URL, options: AdoptOptions = {}): Promise<AdoptedPart> {
  const { adoptStore: adopt } = await import("./store.ts");
  return await adopt(location, options);
}

/**
 * Checks the record, the ground and the lock table of a store, but not its parts. Returns undefined
 * if there is no store. `repair` recreates a lost or damaged record, and repairs the lock table
 * while no process uses the store.
 */
export async function verifyStore(
  location: string | URL,
  options: VerifyOptions = {},
): Promise<VerifyReport | undefined> {
  const { verifyStore: verify } = await import("./verify-store.ts");
  return await verify(location, options);
}

/**
 * Checks the lock table of path locks that were opened with `openPathLocks`. Returns undefined if
 * there are none, and in a store. `repair` repairs an unreadable table while no process uses it.
 */
export async function verifyPathLocks(
  location: string | URL,
  options: VerifyOptions = {},
): Promise<VerifyReport | undefined> {
  const { verifyPathLocks: verify } = await import("./verify-store.ts");
  return await verify(location, options);
}

/**
 * Reports the format of every part of a store, or of a single part, and upgrades older formats to
 * the newest that this release writes. Older releases refuse upgraded data. With `dryRun` it only
 * reports. The next call completes an interrupted one. In a database it upgrades the schema, which
 * all stores of the database share, even while they are open.
 *
 * Throws RESOURCE_BUSY, with the holders, while another process has the store or part open, and
 * NOT_A_STORE if there is neither.
 */
export async function upgradeStore(location: string | URL, options: UpgradeOptions = {}): Promise<FormatReport[]> {
  const { upgradeStore: upgrade } = await import("./upgrade-store.ts");
  return await upgrade(location, options);
}

/**
 * Copies a store, or one log, box or object store, between folders and databases. Events, consumers,
 * tickets in every state, ledgers, buckets and versions keep their ids, times and order. Creates `to`
 * if it does not exist. A repeated copy adds what is missing. No process may use `from` meanwhile.
 *
 * Throws RESOURCE_BUSY while a living process has `from` open, UNSUPPORTED for a store with a tree of
 * files and anything else that cannot be copied as it is, LOG_REWOUND if a log of `to` has other
 * events, COPY_CONFLICT if a ticket or object of `to` differs, NOT_A_STORE if there is nothing in
 * `from`, INVALID_PATH for "memory:" or two equal locations, PAYLOAD_MISMATCH, and CORRUPT.
 *
 * @example
 * ```ts
 * const copied = await copyStore("/mnt/shop", "postgres://shop@db/shop?store=main", { verify: true });
 * console.log(copied.every(({ equal }) => equal));
 * ```
 */
export async function copyStore(
  from: string | URL,
  to: string | URL,
  options: CopyOptions = {},
): Promise<CopiedPart[]> {
  const { copyStore: copy } = await import("./copy-store.ts");
  return await copy(from, to, options);
}

/**
 * Returns the numbers of a store in the text format of Prometheus: processes, locks, events, tickets, objects and
 * files. Opens the parts that exist; it writes nothing if the store was opened with `readOnly`. A part that cannot be
 * read is counted in `holdfast_metrics_unreadable`. Throws CLOSED.
 *
 * @example
 * ```ts
 * await using store = await openStore("/mnt/shop", { readOnly: true });
 * console.log(await storeMetrics(store, { what: "state" }));
 * ```
 */
export async function storeMetrics(store: Store, options: StoreMetricsOptions = {}): Promise<string> {
  const { storeMetrics: read } = await import("./store-metrics.ts");
  return await read(store, options);
}

/**
 * Backs up a store while programs use it, with all of its parts, to a folder or to
 * `s3://BUCKET/PREFIX`. Everything that was acknowledged before the call is in it. Copies only what
 * the last backup there does not have, and continues one that was interrupted. A backup is complete
 * or does not exist.
 *
 * Throws NOT_A_STORE, WRONG_STORE if `to` has the backups of another store, INVALID_PATH if `to` has
 * other files or lies in the store, RESOURCE_BUSY while old backups are pruned, UNSUPPORTED for a
 * store in a database or in memory, LOCK_TIMEOUT if a program holds a lock on the files for ten
 * minutes, LOCK_LOST if another process removed the backup's own lock on them, CLOSED if a process
 * gave the backup up because it had not advanced for an hour, and DISK_FULL; for a bucket,
 * NO_SUCH_BUCKET, NO_PERMISSION and IO_ERROR.
 *
 * @example
 * ```ts
 * const { id, added } = await backup("/mnt/shop", "s3://backups/shop");
 * ```
 */
export async function backup(
  location: string | URL,
  to: string | URL,
  options: BackupOptions = {},
): Promise<BackupInfo> {
  return await (await import("./backup/backup.ts")).backup(location, to, options);
}

/**
 * Restores a backup, the newest one by default, into a folder that is empty or does not exist. The
 * folder appears when everything in it was verified and is durable; a repeated call continues an
 * interrupted one. The restored store grants higher fences than the living store granted since the
 * backup, unless that one got more than 1,000 lock requests a second on average.
 *
 * Throws NOT_A_STORE if there is no such backup, CORRUPT if it is damaged, INVALID_PATH if
 * `location` is not empty or is a mount point, RESOURCE_BUSY while another restore into it is in
 * progress, and DISK_FULL.
 */
export async function restore(
  from: string | URL,
  location: string | URL,
  options: RestoreOptions = {},
): Promise<RestoreReport> {
  return await (await import("./backup/restore.ts")).restore(from, location, options);
}

/**
 * Lists the complete backups in a folder or bucket, oldest first. Throws NOT_A_STORE if no backup was
 * ever begun there, and CORRUPT.
 */
export async function listBackups(location: string | URL, options: ListBackupsOptions = {}): Promise<BackupInfo[]> {
  return await (await import("./backup/manage.ts")).listBackups(location, options);
}

/**
 * Reads everything that the backups in a folder or bucket need, and reports what is missing or
 * damaged. Throws NOT_A_STORE if no backup was ever begun there.
 */
export async function verifyBackups(location: string | URL, options: VerifyBackupsOptions = {}): Promise<VerifyReport> {
  return await (await import("./backup/manage.ts")).verifyBackups(location, options);
}

/**
 * Removes all backups but the `keep` newest ones, and what only they needed. Throws RESOURCE_BUSY
 * while a backup is being made there, or was interrupted within the last hour; NOT_A_STORE if no
 * backup was ever begun there; CORRUPT, before it removes a backup, if one that stays is damaged; and
 * CLOSED if it stood still for an hour, so that another process gave it up.
 */
export async function pruneBackups(location: string | URL, options: PruneOptions): Promise<PruneReport> {
  return await (await import("./backup/manage.ts")).pruneBackups(location, options);
}

/**
 * Tests how far the file system of `directory` can be trusted. Creates and removes a directory of
 * its own there, and touches nothing else. An unsuitable file system is a result, not an error.
 * Throws INVALID_PATH, NO_PERMISSION and DISK_FULL if nothing could be tested.
 */
export async function doctor(directory: string, options: DoctorOptions = {}): Promise<DoctorReport> {
  const { doctor: examine } = await import("./doctor/index.ts");
  return await examine(directory, options);
}
