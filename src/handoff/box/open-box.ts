// Opening a box: its record, its ground, and what must hold of its directory.
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
  /** Of the store that opens the box. Default: the box is opened alone. */
  readonly ground?: Ground | undefined;
}

export interface OpenedBox {
  readonly box: Box;
  readonly ownsGround: boolean;
}

/** Makes the box if there is none. CROSS_DEVICE when a part of it lies on another file system. */
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
      // Another process has made the box meanwhile, with another ground: follow its record.
      if (ownsGround) await ground.close();
      return await openBox(ports, directory, options);
    }
    await mustBeOnOneDevice(ports, directory, ground);
    return { box: new Box(ground, directory, { id: record.id, isSynced: options.isSynced }), ownsGround };
  } catch (error) {
    if (ownsGround) await ground.close();
    throw error;
  }
}

/** Every step is a rename, which works only within one file system. */
async function mustBeOnOneDevice({ disk }: Ports, directory: string, { layout }: Ground): Promise<void> {
  const own = (await disk.findStat(directory))?.device;
  const parts = (await disk.list(directory)).filter((name) => !name.includes("."));
  for (const path of [layout.directory, ...parts.map((name) => `${directory}/${name}`)]) {
    const device = (await disk.findStat(path))?.device;
    if (device === undefined || device === own) continue;
    const message = `${path} lies on another file system than ${directory}, so tickets cannot be moved in one step. Put the whole box on one file system.`;
    throw holdfastError("CROSS_DEVICE", message, { path });
  }
}

function notDirectory(path: string, cause: unknown): Error {
  return holdfastError("INVALID_PATH", `${path} is a file: name a directory.`, { path }, cause);
}
