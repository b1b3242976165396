// Opens a box: its record, its ground, and the checks of its directory.
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { checkExpectedStore } from "../../durable/publish/record-file.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import type { OpenOptions } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { makeId } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { joinGround, recordedGround } from "../../part/part.ts";
import type { Ports } from "../../ports/ports.ts";
import { Box } from "./box.ts";
import { boxPart, decideBox, findBox } from "./box-record.ts";

export interface OpenBoxOptions extends OpenOptions {
  readonly leaseMs?: number | undefined;
  readonly isSynced?: boolean | undefined;
  /**
   * The ground of the store to which the box belongs. Default: the box is opened without a store
   * and joins its own ground.
   */
  readonly ground?: Ground | undefined;
}

export interface OpenedBox {
  readonly box: Box;
  readonly ownsGround: boolean;
}

/**
 * Creates the box if it does not exist. Throws CROSS_DEVICE if one of its directories is on another
 * file system.
 */
export async function openBox(ports: Ports, directory: string, options: OpenBoxOptions = {}): Promise<OpenedBox> {
  const known = await findBox(ports.disk, directory).catch((error: unknown) => {
    throw hasErrno(error, "ENOTDIR") ? notDirectory(directory, error) : error;
  });
  checkExpectedStore({ what: boxPart.what, path: directory, found: known }, options);
  const { ground, ownsGround } = await joinGround(
    boxPart,
    { ports, directory, ground: options.ground },
    { known, leaseMs: options.leaseMs, prepare: () => ensureDirectory(ports.disk, directory) },
  );
  try {
    const id = makeId(ports.clock.wallMs(), ports.random.bytes(16));
    const record = known ?? (await decideBox(ground.staging, directory, { id, ...recordedGround(directory, ground) }));
    if (record.ground !== recordedGround(directory, ground).ground) {
      // Another process created the box meanwhile, with another ground. Its record decides.
      if (ownsGround) await ground.close();
      return await openBox(ports, directory, options);
    }
    await mustBeOnOneDevice(ports, directory, ground);
    const { id: recordedId, sharesKeys = false } = record;
    return { box: new Box(ground, directory, { id: recordedId, isSynced: options.isSynced, sharesKeys }), ownsGround };
  } catch (error) {
    if (ownsGround) await ground.close();
    throw error;
  }
}

/** Every step of a ticket is a rename, which works only within one file system. */
async function mustBeOnOneDevice({ disk }: Ports, directory: string, { layout }: Ground): Promise<void> {
  const own = (await disk.findStat(directory))?.device;
  const parts = (await disk.list(directory)).filter((name) => !name.includes("."));
  for (const path of [layout.directory, ...parts.map((name) => `${directory}/${name}`)]) {
    // A symbolic link to itself has no device. Another program made it.
    const device = await disk.findStat(path).then(
      (found) => found?.device,
      (error: unknown) => {
        if (!hasErrno(error, "ELOOP")) throw error;
      },
    );
    if (device === undefined || device === own) continue;
    const message = `${path} is on another file system than ${directory}, so tickets cannot be moved in one step. Put the whole box on one file system.`;
    throw holdfastError("CROSS_DEVICE", message, { path });
  }
}

function notDirectory(path: string, cause: unknown): Error {
  return holdfastError("INVALID_PATH", `${path} is a file: name a directory.`, { path }, cause);
}
