// Upgrades a store, or a lone part: finds its formats on the disk, and runs the steps to the newest ones.
import { Ground } from "./durable/liveness/ground.ts";
import { isThere } from "./durable/publish/directory.ts";
import { isStore, StoreLayout } from "./durable/store/store-record.ts";
import { holdfastError } from "./errors.ts";
import { logPart } from "./events/log/format/log-record.ts";
import { checkOptions, type OptionNames } from "./format/known-options.ts";
import { boxPart, shareKeys, sharedKeysFormat } from "./handoff/box/box-record.ts";
import { followLinks } from "./locks/naming/follow-path.ts";
import { objectsPart } from "./objects/bucket/objects-record.ts";
import { listParts } from "./part/location.ts";
import { findFormat, groundFormats, recordFormat, type Format, type FormatReport } from "./part/upgrade/formats.ts";
import { mustBeIdle } from "./part/upgrade/idle.ts";
import type { Disk } from "./ports/disk.ts";
import { directoryOf, isPostgres } from "./ports/node/location.ts";
import { openNodePorts } from "./ports/node/ports.ts";
import type { Ports } from "./ports/ports.ts";

const boxFormat: Format = {
  ...recordFormat("hand-off box", "box.json", sharedKeysFormat),
  step: {
    change: "keys that are published together share a file",
    take: (ground, directory) => shareKeys(ground.staging, directory),
  },
};

/** The formats of each kind of part, without its ground. A new kind of part needs a line here. */
const partFormats = [
  { kind: logPart, formats: [recordFormat("event log", "log.json")] },
  { kind: boxPart, formats: [boxFormat] },
  { kind: objectsPart, formats: [recordFormat("object store", "objects.json")] },
];
const storeFormats = [recordFormat("store", "holdfast.json")];

export type { FormatReport } from "./part/upgrade/formats.ts";

/** Options of `upgradeStore`. */
export interface UpgradeOptions {
  /** Only reports, and changes nothing. Default false. */
  dryRun?: boolean | undefined;
}

interface FormatLocation {
  readonly directory: string;
  /** The ground of the processes that use it. */
  readonly ground: string;
  readonly formats: readonly Format[];
}

/** See `upgradeStore` of "holdfast". */
export async function upgradeStore(location: string | URL, options: UpgradeOptions = {}): Promise<FormatReport[]> {
  checkOptions("upgradeStore", options, { dryRun: true } satisfies OptionNames<UpgradeOptions>);
  if (isPostgres(location)) return await (await import("./postgres/by-location.ts")).upgradeStoreAt(location, options);
  const given = directoryOf(location);
  const ports = await openNodePorts(given);
  const { path } = await followLinks(ports.disk, given);
  return await upgradeIn(ports, path, options);
}

/** For tests; `upgradeStore` opens the ports of the directory. */
export async function upgradeIn(
  ports: Ports,
  directory: string,
  { dryRun = false }: UpgradeOptions = {},
): Promise<FormatReport[]> {
  const reports: FormatReport[] = [];
  for (const { directory: place, ground, formats } of await findFormatLocations(ports.disk, directory))
    for (const format of formats) {
      const report = await reportOn(ports.disk, format, place);
      if (report === undefined) continue;
      const upgraded = !dryRun && report.state === "older";
      if (upgraded) await upgrade(ports, format, { ground, directory: place });
      reports.push({ ...report, upgraded });
    }
  if (reports.length > 0) return reports;
  const message = `There is no store and no part of one in ${directory}: is it the right directory, and is the share mounted?`;
  throw holdfastError("NOT_A_STORE", message, { path: directory });
}

/** Returns the store, its ground, its parts, and the grounds of parts that have their own. */
async function findFormatLocations(disk: Disk, directory: string): Promise<FormatLocation[]> {
  const places: FormatLocation[] = [];
  const addGround = async (path: string): Promise<void> => {
    if (await isThere(disk, path)) places.push({ directory: path, ground: path, formats: groundFormats });
  };
  const isInStore = await isStore(disk, directory);
  const common = isInStore ? new StoreLayout(directory).ground : `${directory}/.holdfast`;
  if (isInStore) places.push({ directory, ground: common, formats: storeFormats });
  await addGround(common);
  for (const { kind, formats } of partFormats)
    for (const path of await listParts(disk, kind, directory)) {
      const own = `${path}/.holdfast`;
      const hasOwn = path !== directory && (await isThere(disk, own));
      places.push({ directory: path, ground: hasOwn ? own : common, formats });
      if (hasOwn) await addGround(own);
    }
  return places;
}

async function reportOn(
  disk: Disk,
  format: Format,
  directory: string,
): Promise<Omit<FormatReport, "upgraded"> | undefined> {
  const found = await findFormat(disk, format, directory);
  if (found === undefined) return undefined;
  const { what: part, newest, step } = format;
  const state = stateOf(found.found, newest);
  return { part, newest, ...found, state, ...(state === "older" ? { change: step?.change } : {}) };
}

function stateOf(found: number | undefined, newest: number): FormatReport["state"] {
  if (found === undefined) return "damaged";
  if (found > newest) return "newer";
  return found < newest ? "older" : "current";
}

/**
 * Throws RESOURCE_BUSY while another process is alive there. It may run an older release, which the step would lock
 * out.
 */
async function upgrade(
  ports: Ports,
  { what, step }: Format,
  { ground: path, directory }: Pick<FormatLocation, "ground" | "directory">,
): Promise<void> {
  await using ground = await Ground.open(ports, path);
  await mustBeIdle(ground, path, `the ground of a ${what} of an older format`, "upgrade");
  await step?.take(ground, directory);
}
