// The subpath "holdfast/handoff": files passed between programs, claimed once, never lost.
import { openNodePorts } from "../ports/node/ports.ts";
import { directoryOf } from "../ports/node/location.ts";
import { followLinks } from "../locks/naming/follow-path.ts";
import { openBox } from "./box/open-box.ts";
import { BoxHandoff, type HandoffOptions } from "./handoff.ts";

export type { Files, PublishOptions } from "./model/arguments.ts";
export type { Manifest, ManifestFile } from "./model/manifest.ts";
export type { Delivery } from "./consume/delivery.ts";
export type { ConsumeOptions } from "./consume/consumer.ts";
export type { Published } from "./publish/publisher.ts";
export type { BoxHandoff as Handoff, HandoffOptions };

/** Opens the box in `directory`, and makes it if there is none. */
export async function openHandoff(directory: string | URL, options: HandoffOptions = {}): Promise<BoxHandoff> {
  const given = directoryOf(directory);
  const ports = await openNodePorts(given);
  const { path } = await followLinks(ports.disk, given);
  const opened = await openBox(ports, path, { leaseMs: options.leaseMs, isSynced: options.durability !== "none" });
  return new BoxHandoff(opened, options);
}
