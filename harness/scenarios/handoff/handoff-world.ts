// The world of hand-off scenarios: a box with its directories. It says which names only their maker knows, and which
// are permanent; the explorer need not try those at every moment.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { GroundLayout } from "../../../src/durable/liveness/holder-record.ts";
import { Box } from "../../../src/handoff/box/box.ts";
import { minuteName } from "../../../src/handoff/box/layout.ts";
import type { Publication, Published } from "../../../src/handoff/model/publication.ts";
import { publish } from "../../../src/handoff/publish/publisher.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import type { Scenario } from "../../../src/testing/explorer/scenario.ts";

const groundDirectory = "/ground";
export const directory = "/box";
/** So long that no session ends by its clock: a process that slept wakes without knowing it. */
const endlessMs = 10_000_000;

/** Maps each holder to its actor: ids are the same in every run. */
const actorOf = new Map<string, string>();

export interface OpenedBy {
  readonly name: string;
  readonly ports: Ports;
}

export async function openBox(
  { name, ports }: OpenedBy,
  lease: number = endlessMs,
  path: string = directory,
): Promise<Box> {
  const ground = await Ground.open(ports, groundDirectory, { leaseMs: lease });
  actorOf.set((await ground.session()).holder.id, name);
  return new Box(ground, path);
}

/** The ids of all holders that have joined, except the holder of `except`. */
export async function holdersBut({ disk }: Ports, except: Box): Promise<string[]> {
  const own = (await except.ground.session()).holder.id;
  const names = await disk.list(new GroundLayout(groundDirectory).holders);
  return names.flatMap((name) => (name.endsWith(".json") && name !== `${own}.json` ? [name.slice(0, -5)] : []));
}

/** Declares a holder dead that may only sleep. Its own clock does not tell it. */
export async function declareDead({ disk }: Ports, holder: string): Promise<void> {
  const layout = new GroundLayout(groundDirectory);
  await disk.rename(layout.record(holder), layout.deathRecord(holder)).catch(() => undefined);
}

export function publication(text: string, more: Partial<Publication> = {}): Publication {
  return { bodies: [["a.txt", text]], facts: { priority: 5 }, records: {}, contentTypes: {}, ...more };
}

/** A payload too large to be stored in the ticket. */
export const large: string = "x".repeat(65 * 1024);

/** Publishes before the scenario begins. */
export async function plant(ports: Ports, publications: readonly Publication[]): Promise<Published[]> {
  if (publications.length === 0) return [];
  const box = await openBox({ name: "setup", ports });
  const published: Published[] = [];
  for (const each of publications) published.push(await publish(box, each));
  await box.ground.close();
  return published;
}

const owned = /^\/(?:ground\/(?:holders|temp)|box\/(?:staging|processing))\/([0-9a-z]{36})/;
const otherPriorities = /^\/box\/incoming\/[0-46-9]/;
const stays =
  /^\/(ground(\/(holders|temp|ground\.json))?|box(\/(incoming(\/\d)?|delayed|parked|processing|staging|trash|keys(\/.*)?|ledger(\/...)?|notes(\/.*)?|(archive|error)(\/\d+)?|data(\/..)?|lanes(\/\d\d(\/(incoming|order))?)?))?)$/;

export interface Seen {
  /** Actors whose session files other actors check or remove. Default: none. */
  readonly watched?: readonly string[] | undefined;
  /** True if the watched actors were settled before: their files in the ground are gone. */
  readonly areSettled?: boolean | undefined;
  /** True if payloads are removed while the actors run. */
  readonly removesPayloads?: boolean | undefined;
  /** Returns true for a path that is removed although it is usually permanent. */
  readonly isRemoved?: ((path: string) => boolean) | undefined;
}

/** The operations that the explorer need not try at every moment. */
export function boundsOf({
  watched = [],
  areSettled = false,
  removesPayloads = false,
  isRemoved,
}: Seen): Partial<Scenario> {
  const isPermanent = (path: string): boolean => stays.test(path) && isRemoved?.(path) !== true;
  return {
    isPermanent,
    isUnseen: (operation, path) => {
      // A directory that does not exist yet has no entries, like an empty one.
      if (operation === "mkdir" && isPermanent(path)) return true;
      const holder = owned.exec(path)?.[1];
      if (holder !== undefined)
        return !watched.includes(actorOf.get(holder) ?? "") || (areSettled && path.startsWith(groundDirectory));
      if (path.startsWith(`${directory}/trash/`) || otherPriorities.test(path)) return true;
      return !removesPayloads && path.startsWith(`${directory}/data/`);
    },
  };
}

/** Declares all holders dead and removes their files in the ground, as `settle` does. */
export async function settleAll(ports: Ports): Promise<void> {
  const box = await openBox({ name: "meanwhile", ports });
  for (const holder of await holdersBut(ports, box)) {
    await declareDead(ports, holder);
    await box.ground.settle(holder);
  }
  await box.ground.close();
}

/** Creates the ground and the directories that every process would create. */
export async function makeWorld(ports: Ports): Promise<void> {
  for (const path of [groundDirectory, directory]) await ports.disk.mkdir(path);
  const { layout, ground } = await openBox({ name: "setup", ports });
  const made = [layout.incoming(5), layout.processings, layout.stagings, layout.trash, layout.delayed, layout.parked];
  for (const path of [`${directory}/incoming`, ...made]) await ports.disk.mkdir(path);
  await ports.disk.mkdir(`${layout.incoming(5)}/${minuteName(ports.clock.wallMs())}`);
  await ground.close();
}
