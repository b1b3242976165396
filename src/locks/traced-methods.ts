// The methods of locks and holds that are traced operations. Those of locks that Holdfast takes for its own work are
// not.
import type { OperationDetails } from "../telemetry/operation.ts";
import { trace, type TracedMethods } from "../telemetry/trace.ts";
import { workUnder, type PathHold } from "./path/path-hold.ts";
import type { LockRequest, PathLocks } from "./path/path-locks.ts";
import type { StoreHold, StoreLock } from "./store/store-lock.ts";
import type { PortsSemaphore } from "./semaphore/semaphore.ts";

type OfUser = { readonly isOfUser: boolean };
type What = string | LockRequest | readonly (string | LockRequest)[];

export const tracedLockMethods: TracedMethods<PathLocks & OfUser> = {
  part: "locks",
  location: ({ root }) => root,
  isTraced: ({ isOfUser }) => isOfUser,
  methods: {
    tryAcquire: { about: ([path]) => ({ path }) },
    acquire: { about: ([path]) => ({ path }) },
    acquireAll: { about: ([requests]) => about(requests) },
    acquireMove: { about: ([from, to]) => ({ path: from, to, count: 2 }) },
    withLock: { about: ([what]) => about(what) },
    receive: {},
    list: { about: ([options]) => ({ path: options?.under }) },
    break: { about: ([path]) => ({ path }) },
    close: {},
  },
};

const ofHold = {
  about: (_given: readonly unknown[], { id, requests }: PathHold): OperationDetails => ({ id, ...about(requests) }),
};

export const tracedHoldMethods: TracedMethods<PathHold & OfUser & { readonly root: string }> = {
  part: "locks",
  location: ({ root }) => root,
  isTraced: ({ isOfUser }) => isOfUser,
  methods: {
    refresh: ofHold,
    assertHeld: ofHold,
    upgrade: ofHold,
    downgrade: ofHold,
    transfer: ofHold,
    release: ofHold,
  },
};

export const tracedSemaphoreMethods: TracedMethods<PortsSemaphore> = {
  part: "semaphore",
  location: ({ path }) => path,
  methods: {
    tryAcquire: {},
    acquire: {},
    withLock: {},
    status: {},
    findHolder: {},
    release: {},
    clean: {},
    findLocationRisk: "untraced",
  },
};

/** Returns a store lock whose calls are traced. The locks that logs open for themselves are not. */
export function tracedStoreLock(lock: StoreLock): StoreLock {
  const where = (): { readonly location: string } => ({ location: lock.path });
  const acquire: StoreLock["acquire"] = async (options) =>
    tracedStoreHold(await trace("storeLock.acquire", where, () => lock.acquire(options)), lock.path);
  const close = (): Promise<void> => trace("storeLock.close", where, () => lock.close());
  return {
    path: lock.path,
    gate: lock.gate,
    tryAcquire: async () => {
      const hold = await trace("storeLock.tryAcquire", where, () => lock.tryAcquire());
      return hold && tracedStoreHold(hold, lock.path);
    },
    acquire,
    findHolder: () => lock.findHolder(),
    withLock: (work, options) =>
      trace("storeLock.withLock", where, async () => await workUnder(await acquire(options), work)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function tracedStoreHold(hold: StoreHold, location: string): StoreHold {
  const release = (): Promise<void> => trace("storeLock.release", () => ({ location }), () => hold.release()); // prettier-ignore
  return {
    signal: hold.signal,
    acquiredAt: hold.acquiredAt,
    lockId: hold.lockId,
    isContended: () => hold.isContended(),
    assertHeld: () => hold.assertHeld(),
    release,
    [Symbol.asyncDispose]: release,
  };
}

function about(what: What): OperationDetails {
  const paths = (Array.isArray(what) ? what : [what]).map((each: string | LockRequest) =>
    typeof each === "string" ? each : each.path,
  );
  return { path: paths.join(", "), count: paths.length };
}
