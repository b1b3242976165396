// A store lock that could not be opened where nothing can be written: it is opened when somebody needs it, which fails for as long as that is so.
import type { Waiting } from "../../common.ts";
import type { GateKind } from "../../durable/gate/gate-record.ts";
import type { StoreHold, StoreLock } from "./store-lock.ts";
import { workUnder } from "../path/path-hold.ts";

export function createLateStoreLock(path: string, gate: GateKind, open: () => Promise<StoreLock>): StoreLock {
  let opening: Promise<StoreLock> | undefined;
  const opened = (): Promise<StoreLock> =>
    (opening ??= open().catch((error: unknown) => {
      // There may be room, or permission, when the next one asks.
      opening = undefined;
      throw error;
    }));
  const acquire = async (options?: Waiting): Promise<StoreHold> => await (await opened()).acquire(options);
  const close = async (): Promise<void> => {
    const lock = await opening?.catch(() => undefined);
    await lock?.close();
  };
  return {
    path,
    gate,
    tryAcquire: async () => await (await opened()).tryAcquire(),
    acquire,
    findHolder: async () => await (await opened()).findHolder(),
    withLock: async (work, options) => await workUnder(await acquire(options), work),
    close,
    [Symbol.asyncDispose]: close,
  };
}
