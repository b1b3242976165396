// Boxes for tests of consumers: each opening acts as another process.
import { onTestFinished } from "vitest";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import type { Box } from "../../../src/handoff/box/box.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import type { HandoffOptions } from "../../../src/handoff/model/handoff.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { sites, type Site } from "../../sites/sites.ts";

export interface BoxSite {
  readonly directory: string;
  readonly site: Site;
  /** Another process, closed when the test ends. */
  open(options?: HandoffOptions): Promise<BoxHandoff>;
}

/** Every site; `isShared` where two openings act as two processes. */
export const boxSites: readonly [name: string, make: () => Promise<BoxSite>][] = sites.map(([name, make]) => [
  name,
  async () => boxSiteOn(await make()),
]);

export function boxSiteOn(site: Site): BoxSite {
  const directory = `${site.directory}/box`;
  return { directory, site, open: async (options) => await openOn(await site.openPorts(), directory, options) };
}

export async function openOn(ports: Ports, directory: string, options: HandoffOptions = {}): Promise<BoxHandoff> {
  const opened = await openBox(ports, directory, { leaseMs: options.leaseMs });
  const handoff = new BoxHandoff(opened, options);
  onTestFinished(() => handoff.close());
  return handoff;
}

/** The box itself, for tests of single steps. */
export async function openBoxOn(ports: Ports, directory: string, leaseMs?: number): Promise<Box> {
  const { box } = await openBox(ports, directory, { leaseMs });
  onTestFinished(() => box.ground.close());
  return box;
}

/** The paths of all tickets below a directory of the box, in order. */
export async function ticketsBelow(disk: Disk, path: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of (await disk.list(path).catch((): string[] => [])).sort())
    if (name.endsWith(".json")) found.push(`${path}/${name}`);
    else found.push(...(await ticketsBelow(disk, `${path}/${name}`)));
  return found;
}

/** In which states the tickets of a box are: "archive", "error", … with their names. */
export async function statesOf(disk: Disk, directory: string): Promise<Record<string, string[]>> {
  const states: Record<string, string[]> = {};
  for (const state of ["incoming", "lanes", "delayed", "processing", "parked", "archive", "error"]) {
    const names = (await ticketsBelow(disk, `${directory}/${state}`))
      .filter((path) => state !== "lanes" || path.includes("/incoming/"))
      .map((path) => path.slice(path.lastIndexOf("/") + 1));
    if (names.length > 0) states[state] = names;
  }
  return states;
}
