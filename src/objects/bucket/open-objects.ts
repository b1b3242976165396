// Opening an object store: its record, and its ground.
import type { OpenOptions } from "../../common.ts";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { checkExpectedStore } from "../../durable/publish/record-file.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { makeId } from "../../format/id.ts";
import { joinGround, recordedGround } from "../../part/part.ts";
import type { Ports } from "../../ports/ports.ts";
import { decideObjects, findObjects, objectsPart } from "./objects-record.ts";
import { ObjectsPlace } from "./objects-place.ts";

export interface OpenObjectsOptions extends OpenOptions {
  readonly leaseMs?: number | undefined;
  /** Default true. */
  readonly isSynced?: boolean | undefined;
  /** Of the store that opens it. Default: it is opened alone. */
  readonly ground?: Ground | undefined;
}

export interface OpenedObjects {
  readonly place: ObjectsPlace;
  readonly ownsGround: boolean;
}

/** Makes the object store if there is none. */
export async function openPlace(
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
      // Another process has made it meanwhile, with another ground: follow its record.
      if (ownsGround) await ground.close();
      return await openPlace(ports, directory, options);
    }
    return { place: new ObjectsPlace(ground, directory, { isSynced: options.isSynced }), ownsGround };
  } catch (error) {
    if (ownsGround) await ground.close();
    throw error;
  }
}
