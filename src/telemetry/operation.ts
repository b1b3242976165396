// The operations that are traced, and the message on the channels of one.
import { tracingChannel, type TracingChannel } from "node:diagnostics_channel";

/** The names of all traced operations: the part and the method that a program calls. */
export const operationNames = [
  "events.append",
  "events.read",
  "events.last",
  "events.head",
  "events.bytes",
  "events.subscribe",
  "events.handle",
  "events.consumers",
  "events.addTags",
  "events.decide",
  "events.verify",
  "events.close",
  "handoff.publish",
  "handoff.take",
  "handoff.takeParked",
  "handoff.resumeParked",
  "handoff.deliveries",
  "handoff.handle",
  "handoff.ack",
  "handoff.retry",
  "handoff.fail",
  "handoff.postpone",
  "handoff.adopt",
  "handoff.export",
  "handoff.find",
  "handoff.findByKey",
  "handoff.list",
  "handoff.waitFor",
  "handoff.content",
  "handoff.stats",
  "handoff.replay",
  "handoff.discard",
  "handoff.pause",
  "handoff.resume",
  "handoff.collect",
  "handoff.verify",
  "handoff.close",
  "locks.tryAcquire",
  "locks.acquire",
  "locks.acquireAll",
  "locks.acquireMove",
  "locks.withLock",
  "locks.receive",
  "locks.list",
  "locks.break",
  "locks.close",
  "locks.refresh",
  "locks.assertHeld",
  "locks.upgrade",
  "locks.downgrade",
  "locks.transfer",
  "locks.release",
  "storeLock.tryAcquire",
  "storeLock.acquire",
  "storeLock.withLock",
  "storeLock.release",
  "storeLock.close",
  "semaphore.tryAcquire",
  "semaphore.acquire",
  "semaphore.withLock",
  "semaphore.status",
  "semaphore.findHolder",
  "semaphore.release",
  "semaphore.clean",
  "objects.createBucket",
  "objects.bucket",
  "objects.findBucket",
  "objects.listBuckets",
  "objects.deleteBucket",
  "objects.collect",
  "objects.verify",
  "objects.close",
  "objects.put",
  "objects.get",
  "objects.head",
  "objects.delete",
  "objects.deleteMany",
  "objects.copy",
  "objects.update",
  "objects.list",
  "objects.listVersions",
  "objects.objects",
  "objects.versions",
  "objects.tags",
  "objects.parts",
  "objects.setTags",
  "objects.setRetention",
  "objects.setLegalHold",
  "objects.setAcl",
  "objects.setConfig",
  "objects.setDocument",
  "objects.createUpload",
  "objects.upload",
  "objects.listUploads",
  "upload.put",
  "upload.copy",
  "upload.parts",
  "upload.complete",
  "upload.abort",
  "files.read",
  "files.readText",
  "files.readStamped",
  "files.readTextStamped",
  "files.stat",
  "files.list",
  "files.write",
  "files.update",
  "files.updateText",
  "files.add",
  "files.remove",
  "files.move",
  "files.changes",
  "files.history",
  "files.search",
  "files.settled",
  "files.rebuildIndex",
  "files.session",
  "files.verify",
  "files.stats",
  "files.close",
  "s3.request",
] as const;

/** The name of a traced operation. Its channels are `tracing:holdfast:<name>:start` and so on. */
export type OperationName = (typeof operationNames)[number];

/**
 * The message on the channels of one operation. All channels of one call get the same object. `location` is always
 * present, the other properties where the operation has them.
 */
export interface OperationMessage {
  /** The name of the operation, such as `events.append`. */
  readonly operation: OperationName;
  /** The directory of the part, or its location in a database without the password. */
  readonly location: string;
  /** The bucket of an object. */
  readonly bucket?: string | undefined;
  /** The key of an object or of a ticket. */
  readonly key?: string | undefined;
  /** A path in the tree of files, or the paths that are locked. */
  readonly path?: string | undefined;
  /** The new path of a move or copy. */
  readonly to?: string | undefined;
  /** The id of a ticket, a hold or an upload. */
  readonly id?: string | undefined;
  /** The name of a consumer. */
  readonly consumer?: string | undefined;
  /** The number of the attempt at a ticket, from 1. */
  readonly attempt?: number | undefined;
  /** The number of events, files or keys. For an iteration, the number of items so far. */
  count?: number | undefined;
  /** The operation of S3, such as `PutObject`. */
  s3Operation?: string | undefined;
  /** The HTTP method of a request to the gateway. */
  readonly method?: string | undefined;
  /** The HTTP status of a response of the gateway. */
  status?: number | undefined;
  /**
   * A subscriber of `start` can set properties here. Append and publish store them with the events or the ticket, as
   * `trace` in their metadata.
   */
  readonly carrier?: Record<string, string> | undefined;
  /** The properties that were stored with each delivered event or with the delivered ticket, or sent with the request. */
  readonly carried?: readonly Readonly<Record<string, string>>[] | undefined;
  /**
   * A subscriber of `start` can set it to run the operation in a context of its own. It must call `work` at once, and
   * return its result. A subscriber whose context is an `AsyncLocalStorage` uses `channel.bindStore` instead.
   */
  around?: (<T>(work: () => T) => T) | undefined;
  /** The result, on `asyncStart` and `asyncEnd`. Absent for an iteration. */
  result?: unknown;
  /** The error, on `error` and after it. */
  error?: unknown;
}

/** The properties of a message that describe one call. */
export type OperationDetails = Omit<OperationMessage, "operation" | "location" | "result" | "error" | "around">;

export type OperationChannel = TracingChannel<unknown, OperationMessage>;

const channels = new Map<OperationName, OperationChannel>();

/** Returns the channels of an operation. The same ones for every copy of the package in this process. */
export function operationChannel(name: OperationName): OperationChannel {
  let channel = channels.get(name);
  if (channel === undefined) {
    channel = tracingChannel<unknown, OperationMessage>(`holdfast:${name}`);
    channels.set(name, channel);
  }
  return channel;
}
