// The world of hand-off scenarios: a box with its directories, which of its names only their maker knows, and
// which stay. What is private or permanent need not be tried at every moment.
import { Ground } from "../../../durable/liveness/ground.ts";
import { GroundLayout } from "../../../durable/liveness/holder-record.ts";
import { Box } from "../../../handoff/box/box.ts";
import { minuteName } from "../../../handoff/box/layout.ts";
import { publish, type Publication, type Published } from "../../../handoff/publish/publisher.ts";
import type { Ports } from "../../../ports/ports.ts";
import type { Scenario } from "../../explorer/scenario.ts";

const groundDirectory = "/ground";
export const directory = "/box";
/** So long that no session ends by its clock: a process that sleeps wakes without knowing it. */
const endlessMs = 10_000_000;

/** The actor that each holder is: ids are the same in every run. */
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

/** The ids of the holders that have joined, but for those of `except`. */
export async function holdersBut({ disk }: Ports, except: Box): Promise<string[]> {
  const own = (await except.ground.session()).holder.id;
  const names = await disk.list(new GroundLayout(groundDirectory).holders);
  return names.flatMap((name) => (name.endsWith(".json") && name !== `${own}.json` ? [name.slice(0, -5)] : []));
}

/** Declares a holder dead that may only sleep: its clock does not tell it. */
export async function declareDead({ disk }: Ports, holder: string): Promise<void> {
  const layout = new GroundLayout(groundDirectory);
  await disk.rename(layout.record(holder), layout.deathRecord(holder)).catch(() => undefined);
}

export function publication(text: string, more: Partial<Publication> = {}): Publication {
  return { bodies: [["a.txt", text]], facts: { priority: 5 }, records: {}, contentTypes: {}, ...more };
}

/** A payload that is not put into the ticket. */
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
  /** Actors whose session files other actors look at or remove. Default: none. */
  readonly watched?: readonly string[] | undefined;
  /** They were settled before: what they have left in the ground is gone. */
  readonly areSettled?: boolean | undefined;
  /** Payloads are removed while the actors run. */
  readonly removesPayloads?: boolean | undefined;
  /** Something that stays otherwise is removed. */
  readonly isRemoved?: ((path: string) => boolean) | undefined;
}

/** What the explorer need not try at every moment. */
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
      // In a directory that is not there yet is nothing, as in one that is empty.
      if (operation === "mkdir" && isPermanent(path)) return true;
      const holder = owned.exec(path)?.[1];
      if (holder !== undefined)
        return !watched.includes(actorOf.get(holder) ?? "") || (areSettled && path.startsWith(groundDirectory));
      if (path.startsWith(`${directory}/trash/`) || otherPriorities.test(path)) return true;
      return !removesPayloads && path.startsWith(`${directory}/data/`);
    },
  };
}

/** Declares all holders dead and removes what they have in the ground, as `settle` does. */
export async function settleAll(ports: Ports): Promise<void> {
  const box = await openBox({ name: "meanwhile", ports });
  for (const holder of await holdersBut(ports, box)) {
    await declareDead(ports, holder);
    await box.ground.settle(holder);
  }
  await box.ground.close();
}

/** Makes the ground and the directories that every process would make. */
export async function makeWorld(ports: Ports): Promise<void> {
  for (const path of [groundDirectory, directory]) await ports.disk.mkdir(path);
  const { layout, ground } = await openBox({ name: "setup", ports });
  const made = [layout.incoming(5), layout.processings, layout.stagings, layout.trash, layout.delayed, layout.parked];
  for (const path of [`${directory}/incoming`, ...made]) await ports.disk.mkdir(path);
  await ports.disk.mkdir(`${layout.incoming(5)}/${minuteName(ports.clock.wallMs())}`);
  await ground.close();
}
