// Opens an object store: its record and its ground.
import type { OpenOptions } from "../../common.ts";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { checkExpectedStore } from "../../durable/publish/record-file.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { makeId } from "../../format/id.ts";
import { joinGround, recordedGround } from "../../part/part.ts";
import type { Ports } from "../../ports/ports.ts";
import { decideObjects, findObjects, objectsPart } from "./objects-record.ts";
import { ObjectsStorage } from "./objects-storage.ts";

export interface OpenObjectsOptions extends OpenOptions {
  readonly leaseMs?: number | undefined;
  /** Default true. */
  readonly isSynced?: boolean | undefined;
  /**
   * The ground of the store to which it belongs. Default: the object store is opened without a
   * store and joins its own ground.
   */
  readonly ground?: Ground | undefined;
}

export interface OpenedObjects {
  readonly storage: ObjectsStorage;
  readonly ownsGround: boolean;
}

/** Creates the object store if it does not exist. */
export async function openStorage(
  ports: Ports,
  directory: string,
  options: OpenObjectsOptions = {},
): Promise<OpenedObjects> {
  const known = await findObjects(ports.disk, directory);
  checkExpectedStore({ what: objectsPart.what, path: directory, found: known }, options);
  const { ground, ownsGround } = await joinGround(
    objectsPart,
    { ports, directory, ground: options.ground },
    { known, leaseMs: options.leaseMs, prepare: () => ensureDirectory(ports.disk, directory) },
  );
  try {
    const id = makeId(ports.clock.wallMs(), ports.random.bytes(16));
    const own = recordedGround(directory, ground);
    const record = known ?? (await decideObjects(ground.staging, directory, { id, ...own }));
    if (record.ground !== own.ground) {
      // Another process created the object store meanwhile, with another ground. Its record
      // decides.
      if (ownsGround) await ground.close();
      return await openStorage(ports, directory, options);
    }
    return { storage: new ObjectsStorage(ground, directory, { isSynced: options.isSynced }), ownsGround };
  } catch (error) {
    if (ownsGround) await ground.close();
    throw error;
  }
}
