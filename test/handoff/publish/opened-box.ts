// Boxes for tests of producers: opened on any ports, closed when the test ends, and everything that is in one.
import type { Handoff } from "../../../src/handoff/index.ts";
import { onTestFinished } from "vitest";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import type { HandoffOptions } from "../../../src/handoff/model/handoff.ts";
import type { Delivery } from "../../../src/handoff/model/delivery.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";

export async function openOn(ports: Ports, directory: string, options: HandoffOptions = {}): Promise<BoxHandoff> {
  const opened = await openBox(ports, directory, { leaseMs: options.leaseMs });
  const handoff = new BoxHandoff(opened, options);
  onTestFinished(() => handoff.close());
  return handoff;
}

/** Every file below `directory`, by its path below it. */
export async function filesIn(disk: Disk, directory: string): Promise<string[]> {
  const found: string[] = [];
  const walk = async (path: string): Promise<void> => {
    for (const name of await disk.list(path).catch(emptyIfGone)) {
      const below = `${path}/${name}`;
      if ((await disk.findStat(below))?.kind === "directory") await walk(below);
      else found.push(below.slice(directory.length + 1));
    }
  };
  await walk(directory);
  return found.sort();
}

function emptyIfGone(error: unknown): string[] {
  if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
  throw error;
}

/** Takes and acknowledges all that is there. */
export async function drain(box: Handoff): Promise<Taken[]> {
  const all: Taken[] = [];
  for (let delivery = await box.take(); delivery !== undefined; delivery = await box.take()) {
    all.push(await readAll(delivery));
    await delivery.ack();
  }
  return all;
}

export interface Taken {
  readonly id: string;
  readonly key: string;
  readonly files: Readonly<Record<string, string>>;
}

async function readAll(delivery: Delivery): Promise<Taken> {
  const files: Record<string, string> = {};
  for (const { name } of delivery.files) files[name] = await delivery.text(name);
  return { id: delivery.id, key: delivery.key, files };
}
